"""A run under a claim's token that there is no claim of must never be; where one is, it is said, and taken over."""

import logging

import pytest

from hookonce.receiver.cli.doctor.ledger_checks import ledger_checks
from hookonce.receiver.ledger.maintenance import lost_events
from tests.support.inbox import effect, inbox
from tests.support.waiting import until

__all__ = ["inbox"]


@pytest.fixture
def unclaimed(inbox):
    """An event whose run is under a token that nobody knows."""
    inbox.on(effect)
    (event,) = inbox.deliver("c")
    inbox.connection.execute("UPDATE hookonce.queue SET token = gen_random_uuid(), handler = 'effect'")
    return event


def test_run_whose_claim_is_gone_is_claimed_again_and_taken_over(inbox, unclaimed, caplog):
    inbox.work()
    assert inbox.runs() == [("c", "effect", "running", 1)]

    with caplog.at_level(logging.ERROR):
        lost_events.look(inbox.connection)
    inbox.lapse()
    until(lambda: (inbox.work(), inbox.runs())[1], [("c", "effect", "done", 1)])

    assert inbox.effects() == ["c"]
    assert "1 runs were under a claim that there is not" in caplog.text
    assert [record.events for record in caplog.records if record.levelno == logging.ERROR] == [[unclaimed]]


def test_doctor_names_runs_whose_claim_is_gone(inbox, unclaimed):
    (finding,) = (each for each in ledger_checks(inbox.settings) if each.check == "claims")

    assert finding.level == "fail"
    assert f"newest events: {unclaimed})" in finding.text


def test_claims_that_are_there_are_left_as_they_are(inbox):
    def handle(event, tx):
        lost_events.look(inbox.connection)
        claims.extend(inbox.rows("SELECT token, cardinality(events), lease_until FROM hookonce.claims"))
        effect(event, tx)

    claims = []
    inbox.on(handle)
    inbox.deliver("a")

    inbox.work()

    assert [rows for _, rows, _ in claims] == [1]
    assert inbox.runs() == [("a", "handle", "done", 1)]
