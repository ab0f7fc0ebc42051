"""Who signs its URL: found by moving captured deliveries to another host, and compared with what modules say."""

from collections import defaultdict
from dataclasses import replace

import pytest

from hookonce.providers.kit.registry import load
from tests.support.captured import captured
from tests.support.for_each import for_each


def cases_by_sender():
    cases = defaultdict(list)
    for case in captured():
        if case.reason is None:
            cases[case.name.partition("/")[0]].append(case)
    return cases.items()


def moved(case):
    scheme, _, rest = (case.delivery.url or "https://hooks.example.com/hooks/it").partition("://")
    return replace(case.delivery, url=f"{scheme}://elsewhere.{rest}")


def told_apart(case):
    if case.reply is not None:
        return case.probe(case.delivery, [case.secret]) != case.probe(moved(case), [case.secret])
    return case.verdict(moved(case)) is not None


@for_each(cases_by_sender, parts=2)
def test_provider_says_whether_it_signs_its_url(name, cases):
    told = [told_apart(case) for case in cases]
    says = [case.provider.signs_url for case in cases]

    assert any(told) == any(says), name


@pytest.mark.parametrize(("signed", "says"), [("{url}{body}", True), ("{body}", False)])
def test_generic_provider_signs_its_url_where_its_template_does(signed, says):
    options = {"header": "X-Sig", "signed": signed, "id": "$.id", "type": "$.type"}

    assert load("hmac", options=options).signs_url is says
