import os
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.providers.kit.registry import load
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.ledger.decryption import pack
from hookonce.receiver.ledger.quarantine import Arrival, keep
from hookonce.receiver.source import Quarantine

KEY = os.urandom(32)
STRIPE = load("stripe", ())


@pytest.fixture
def held(inbox, rings, ledger, monkeypatch):  # noqa: ARG001
    """Two deliveries in quarantine: one that the configured secret vouches for, and a forged one."""
    monkeypatch.setenv("KEY", KEY.hex())
    tables = (inbox / "hookonce.toml").read_text()
    (inbox / "hookonce.toml").write_text(f'[receiver]\nencryption_keys = ["env:KEY"]\n{tables}')
    now = datetime.now(UTC)
    arrivals = [
        Arrival(
            "bad_signature", timedelta(0), pack(STRIPE.delivery(b'{"id": "evt_1", "type": "a"}', secret, now))
        )
        for secret in ("whsec_of_the_tests", "whsec_of_an_attacker")
    ]
    keep(ledger, "stripe", Quarantine(), Keyring([KEY]), arrivals)


def test_reverify_takes_in_what_is_genuine_and_says_so(held, hookonce):  # noqa: ARG001
    done = hookonce("reverify", "stripe", "--since", "2h")

    assert done.code == 0
    assert done.err.splitlines() == [
        "2 deliveries looked at, 1 would be taken in",
        "1 refused again: bad_signature",
        "2 deliveries looked at, 1 taken in (1 events new, 0 known)",
        "1 refused again: bad_signature",
    ]
    assert hookonce("events", "list", "--json").documents[0]["event_id"] == "evt_1"


def test_quarantine_counts_by_source_and_reason(held, hookonce):  # noqa: ARG001
    (row,) = hookonce("rejected", "quarantine", "--json").documents

    assert (row["source"], row["reason"], row["count"]) == ("stripe", "bad_signature", 2)


def test_reverify_is_partial_when_a_delivery_does_not_open(held, hookonce, monkeypatch):  # noqa: ARG001
    monkeypatch.setenv("KEY", os.urandom(32).hex())

    done = hookonce("reverify", "stripe")

    assert done.code == 3
    assert "2 could not be opened" in done.err


def test_reverify_says_that_a_source_has_no_quarantine(inbox, rings, ledger, hookonce):  # noqa: ARG001
    done = hookonce("reverify", "stripe")

    assert "keeps none of what it refuses; `quarantine = true`" in done.err
