import socket

import pytest

from hookonce.providers.kit.conformance import CHECKS
from hookonce.providers.kit.conformance.unsigned_ids import unsigned_place
from tests.support.captured import captured, captured_of
from tests.support.for_each import for_each


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a provider opened a socket")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("no_network")
@for_each(captured)
def test_provider_keeps_the_contract_for_each_captured_delivery(case):
    complaints = {check.__name__: complaint(check, case) for check in CHECKS}

    assert {name: said for name, said in complaints.items() if said} == {}


def complaint(check, case):
    try:
        check(case)
    except AssertionError as complaint:
        return str(complaint) or "it does not"
    return None


CHECKSUM = {"paypal": "the CRC32 of the body is signed: another body with another id can be made to fit"}


def senders():
    return sorted({case.provider.name for case in captured()})


def whose_ids_are_unsigned():
    return sorted(
        {case.provider.name for case in captured() if not case.provider.id_is_signed} - CHECKSUM.keys()
    )


@for_each(whose_ids_are_unsigned)
def test_claim_that_ids_are_unsigned_is_shown_by_a_delivery(name):
    mine = [case for case in captured_of(name) if case.is_genuine and not case.provider.id_is_signed]

    assert any(unsigned_place(case) for case in mine), (
        "no change of an id is accepted: the ids are signed, or the delivery that shows the contrary is missing"
    )


@for_each(senders)
def test_sender_says_for_how_long_it_tries_or_why_nobody_knows(name):
    providers = [case.provider for case in captured_of(name)]

    assert {(each.retry_horizon is None) is bool(each.horizon_unknown) for each in providers} == {True}
