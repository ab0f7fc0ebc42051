"""A bulk replay goes the same way whether its command runs beside the ledger or asks another inbox."""

import time
from types import SimpleNamespace

import pytest

from hookonce.receiver.desk.refusals import NAMED_OR_CHOSEN
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.outcomes import end_events


@pytest.fixture
def dead(inbox):
    """Three dead events of a test's own, the newest of the ledger."""
    inbox.connection.execute("UPDATE hookonce.bulk_replays SET ended_at = now() WHERE ended_at IS NULL")
    (before,) = inbox.connection.execute("SELECT count(*) FROM hookonce.events").fetchone()
    kind = f"kind.{before}"
    rows = store(inbox.connection, [new_event(f"{kind}_{n}", type=kind) for n in range(3)])
    numbers = sorted(row.id for row in rows.values())
    end_events(inbox.connection, "dead", numbers, attempts=3)
    return kind, numbers


@pytest.mark.parametrize("place", [[], ["--at", "there"]], ids=["here", "there"])
def test_command_drives_a_bulk_replay_and_tells_of_each_event(everywhere, dead, place):
    kind, numbers = dead

    ran = everywhere.run(*place, "replay", "--type", kind, "--status", "dead", "--yes", "--json")

    assert (ran.code, [each["id"] for each in ran.documents]) == (0, numbers)
    assert {each["fate"] for each in ran.documents} == {"replayed"}
    assert "replayed 3, done 0, died again 0, still open 3, of 3 that matched" in ran.err


@pytest.mark.parametrize("place", [[], ["--at", "there"]], ids=["here", "there"])
def test_command_that_is_interrupted_stops_its_bulk_replay(everywhere, dead, place, monkeypatch):
    kind, _ = dead

    def interrupt(_seconds):
        raise KeyboardInterrupt

    clock = SimpleNamespace(
        sleep=interrupt, monotonic=time.monotonic
    )  # of this module alone: threads sleep on
    monkeypatch.setattr("hookonce.receiver.cli.replay.bulk.time", clock)
    command = [*place, "replay", "--type", kind, "--status", "dead", "--yes"]

    stopped = everywhere.run(*command, "--rate", "1/m")

    assert stopped.code == 3
    assert "stopped; continue with `hookonce replay --continue" in stopped.err
    assert everywhere.connection.execute(
        "SELECT replayed, ended_at IS NULL FROM hookonce.bulk_replays ORDER BY id DESC LIMIT 1"
    ).fetchone() == (1, False)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"filter": {}}, NAMED_OR_CHOSEN),
        ({"filter": {"source": "stripe"}}, "expected a `status` in the filter"),
    ],
)
def test_bulk_replay_of_what_nobody_was_shown_is_refused(everywhere, asked, said):
    assert everywhere.ask("api", "start_bulk_replay", asked, []).startswith(said)
