"""Adapters as they were written before `Sender(scheme=…)`: they say all of it themselves, and go on as they are."""

import pytest

from hookonce.providers import kit
from hookonce.providers.kit import registry
from hookonce.providers.kit.conformance import CHECKS, cases
from tests.support.captured import DELIVERIES
from tests.support.for_each import for_each
from tests.support.senders_page import OPTIONS

FORMER = DELIVERIES.parent / "support" / "former_adapters"
LEARNED = {"figma": {"identity", "volatile"}}
"""What the module of today knows besides: that Figma counts its attempts in the body."""
NAMES = sorted(path.stem for path in FORMER.glob("*.py"))


@for_each(NAMES)
def test_former_adapter_keeps_the_contract_unchanged(name):
    told = {
        f"{case} {check.__name__}": complaint(check, case)
        for case in cases(DELIVERIES / name, name, [str(FORMER)])
        for check in CHECKS
    }

    assert {place: said for place, said in told.items() if said} == {}
    assert len(told) >= len(CHECKS)


def complaint(check, case):
    try:
        check(case)
    except AssertionError as complaint:
        return str(complaint) or "it does not"
    return None


@for_each(NAMES)
def test_former_adapter_is_what_the_module_of_today_is(name):
    options = OPTIONS.get(name)
    before, now = registry.load(name, [str(FORMER)], options), registry.load(name, options=options)

    for said in (
        "id_is_signed",
        "body_is_unsigned",
        "retry_horizon",
        "identity",
        "tolerance",
        "volatile",
        "methods",
    ):
        assert (getattr(before, said) == getattr(now, said)) is (said not in LEARNED.get(name, ()))
    assert (before.signs_url, before.max_body, before.credentials) == (
        now.signs_url,
        now.max_body,
        now.credentials,
    )


def test_name_that_leaves_the_kit_warns_for_one_version(monkeypatch):
    monkeypatch.setitem(kit.FORMER, "HASHES", "schemes.hmac_signature")

    with pytest.warns(DeprecationWarning, match=r"HASHES is leaving the kit; take it from .*hmac_signature"):
        known = kit.HASHES

    assert "sha256" in known
    with pytest.raises(AttributeError, match="no attribute 'never_was'"):
        _ = kit.never_was
