"""What `hookonce stats` says of workers, and of what holds handlers up."""

import re
import subprocess
import sys
from datetime import timedelta

import pytest

from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.stats import totals, worker_slots
from tests.support import desk
from tests.support.waiting import until


@pytest.fixture
def stats(inbox, rings, hookonce):  # noqa: ARG001
    """Lines of `hookonce stats` that begin with a word, without it; and what `--json` says."""

    def ask(word):
        printed, document = hookonce("stats"), hookonce("stats", "--json")
        assert (printed.code, document.code) == (0, 0)
        lines = [line[21:] for line in printed.lines if line[:21].rstrip() == word]
        return lines, document.documents[0]

    return ask


@pytest.mark.parametrize(
    "word", ["slots", "suspects", "long transaction", "limit", "rate", "breaker", "batches", "paused"]
)
def test_nothing_is_said_where_nothing_is_held_up(stats, word):
    lines, document = stats(word)

    assert lines == []
    assert not document["workers"]


def test_number_that_is_estimated_is_marked_and_is_not_exact(hookonce, inbox, ledger):  # noqa: ARG001
    ledger.execute(
        "INSERT INTO hookonce.queue (event, received_at, source, type, due_at) "
        "SELECT n, now(), 'stripe', 'a', now() FROM generate_series(1, %s) AS n",
        [2 * totals.MAX_COUNTED],
    )

    printed, document = hookonce("stats"), hookonce("stats", "--json")

    assert any(re.match(r"stripe +received +~\d+$", line) for line in printed.lines)
    assert [each["is_exact"] for each in document.documents[0]["events"]] == [False]


def test_slots_in_use_and_lost_are_said_of_each_worker(stats, ledger):
    desk.report(ledger, name="host:2", slots=16, busy=9, lost=2)
    desk.report(ledger, name="host:1", slots=4, busy=0)

    lines, document = stats("slots")

    kept = "one is reserved for fast handlers"
    assert [re.sub(r"\d+ s ago", "N s ago", line) for line in lines] == [
        f"0 of 4 in use, {kept} (host:1, N s ago)",
        f"9 of 16 in use, 2 lost, {kept} (host:2, N s ago)",
    ]
    assert 0 <= document["workers"][1].pop("seconds_ago") < 60
    assert document["workers"][1].pop("seen_at")
    assert document["workers"][1] == {"name": "host:2", "slots": 16, "busy": 9, "lost": 2}


def test_suspects_are_counted_by_handler(stats, ledger):
    desk.suspects(ledger, "shop.credit", 2)

    lines, document = stats("suspects")

    assert lines == ["2 of shop.credit, run one by one"]
    assert document["suspects"] == {"shop.credit": 2}


def test_transaction_that_wrote_and_waits_is_named(stats, ledger, database_url, monkeypatch):
    monkeypatch.setattr(worker_slots, "LONG_AFTER", timedelta(milliseconds=100))
    with desk.waiting(database_url) as pid:
        desk.report(ledger, ("shop\x1b[2J", 7, pid))
        until(lambda: worker_slots.long_transactions(ledger))

        (line,), document = stats("long transaction")

    assert re.fullmatch(r"shop\\x1b\[2J, event 7, \d+\.\d s", line)
    assert [(row["handler"], row["event"]) for row in document["long_transactions"]] == [("shop\x1b[2J", 7)]


def test_runs_that_wait_for_a_place_are_counted(stats, ledger):
    desk.wait_for_place(ledger, "shop.mail", 2)

    lines, document = stats("limit")

    assert lines == ["2 of shop.mail are queued for a slot"]
    assert document["waiting_for_limit"] == {"shop.mail": 2}


def test_wait_for_a_rate_is_said(stats, ledger):
    desk.wait_for_rate(ledger, "shop.sms", 5)

    (line,), document = stats("rate")

    assert re.fullmatch(r"shop\.sms: what comes now waits (2\d\.\d|30\.0) s", line)
    assert document["rate_delay_seconds"].keys() == {"shop.sms"}


@pytest.mark.parametrize(("count", "state"), [(4, "closed"), (5, "open")])
def test_breaker_is_open_from_its_limit_on(stats, ledger, count, state):
    desk.fail_in_a_row(ledger, "shop.credit", count, limit=5)

    lines, document = stats("breaker")

    (line,) = lines
    assert line.startswith(f"shop.credit: {state}")
    assert line.endswith(f", {count} failures in a row: ConnectionError (shop.py:7)")
    assert [row["is_open"] for row in document["breakers"]] == [state == "open"]
    assert [(row["name"], row["by"]) for row in document["paused"]] == [("shop.credit", "breaker")] * (
        state == "open"
    )


def test_open_breaker_says_what_waits_for_it_and_when_one_is_tried(stats, ledger):
    desk.stop(ledger, "shop.credit", 2)

    (line,), document = stats("breaker")

    assert re.fullmatch(
        r"shop\.credit: open since (now|\d+s ago), 2 events wait, the oldest came \d+ s ago, the next try in \d\ds, "
        r"5 failures in a row: ConnectionError \(shop\.py:7\)",
        line,
    )
    assert (document["breakers"][0]["waiting"], document["oldest_due_seconds"]) == (2, 0)


def test_pause_of_a_breaker_is_told_from_one_of_a_person(stats, ledger):
    desk.fail_in_a_row(ledger, "shop.credit", 1, limit=1)
    desk.fail_in_a_row(ledger, "shop.mail", 1, limit=5)
    pauses.pause(ledger, "handler", "shop.mail", "ann")

    lines, _ = stats("paused")
    (told, _), _ = stats("breaker")

    assert lines == ["handler shop.credit (by its circuit breaker)", "handler shop.mail"]
    assert ", 1 failure in a row: " in told


def test_batches_are_said_with_what_is_left_of_those_that_failed(stats, ledger):
    desk.halve(load_settings(need_secrets=False), ledger, "shop.track", "no such place")

    (line,), document = stats("batches")

    left = "the batch is being split; the next of 2 parts has 4 events"
    said = f"shop.track: 3 events in 1, halved 1 times; {left}: ValueError"
    assert line.startswith(said)
    (row,) = document["batches"]
    assert "ValueError" in row.pop("error")
    assert row == {"handler": "shop.track", "batches": 1, "events": 3, "halvings": 1, "size": 4, "waiting": 2}


def test_pause_of_a_handler_that_is_called_by_escapes_moves_no_terminal(stats, ledger):
    pauses.pause(ledger, "handler", "shop\x1b[2J", "ann")

    assert stats("paused")[0] == ["handler shop\\x1b[2J"]


def test_stats_is_imported_without_what_receives_events():
    heavy = "{'rq', 'requests', 'sqlalchemy', 'hookonce.receiver.intake.pipeline'}"
    program = f"import sys, hookonce.receiver.cli.commands.stats; print({heavy} & sys.modules.keys())"

    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert printed.strip() == "set()"
