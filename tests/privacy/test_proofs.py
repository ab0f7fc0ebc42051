"""What is shown of a delivery proves nothing: whoever reads it can't send it again."""

from dataclasses import replace

from hookonce.receiver.privacy.proofs import shown_body, shown_headers, shown_url
from tests.support.captured import captured
from tests.support.for_each import for_each


def genuine():
    return [case for case in captured() if case.is_genuine]


def shown(case, provider, delivery=None):
    sent = delivery or case.delivery
    return replace(
        sent,
        url=shown_url(sent.url, None, provider),
        headers=shown_headers(sent.headers, None, provider),
        body=shown_body(sent.body, sent.headers, None, provider),
        path_secret="",
        readings={},
    )


@for_each(genuine)
def test_delivery_as_it_is_shown_is_refused_at_the_door(case):
    if not case.provider.unauthenticated:
        assert case.verdict(case.delivery) is None
        assert case.verdict(shown(case, case.provider)) is not None
