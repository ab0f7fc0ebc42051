from dataclasses import replace

import pytest

from hookonce.providers import Reason
from tests.support.senders import SIGNING, reason_of, sent


@pytest.mark.parametrize(
    ("secrets", "reason"),
    [
        (["token"], None),
        ([SIGNING], None),
        ([SIGNING, "token"], None),
        (["other"], Reason.BAD_SIGNATURE),
        ([SIGNING[:-4] + "AAA=", "token"], Reason.BAD_SIGNATURE),
        ([""], Reason.NO_SECRET),
    ],
)
def test_gitlab_trusts_the_signature_before_the_token(secrets, reason):
    provider, signed = sent("gitlab", {})
    delivery = replace(signed, headers={**signed.headers, "x-gitlab-token": "token"})

    assert reason_of(provider, delivery, *secrets) == reason


def test_gitlab_token_opens_where_both_kinds_are_configured():
    provider, delivery = sent("gitlab", {}, "token")

    assert reason_of(provider, delivery, SIGNING, "token") is None


def test_gitlab_id_is_the_signed_one():
    provider, delivery = sent("gitlab", {}, event_id="sent")
    forged = replace(delivery, headers={**delivery.headers, "idempotency-key": "new"})

    assert provider.events(forged)[0].id == "sent"
