"""`hookonce stats` prints every figure, and a table of each list that is not empty."""

import re
import subprocess
import sys
from datetime import timedelta

import click
import pytest

from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.stats import totals, worker_slots
from tests.support import desk
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("inbox", "rings")


def lines_of(hookonce):
    ran = hookonce("stats")
    assert ran.code == 0
    return [re.sub(r" {2,}", "  ", line) for line in ran.lines]


def test_figures_stand_above_and_lists_without_a_row_are_left_out(hookonce):
    lines = lines_of(hookonce)

    assert lines[0] == "accepted  0 = nothing; 0 replayed"
    assert {"dead  0", "oldest due seconds  0.0", "notifications pending  0"} <= {*lines}
    assert len(lines) < 24
    assert lines[-1] == ""


def test_what_holds_handlers_up_is_printed_by_handler_and_moves_no_terminal(hookonce, stored, ledger):
    stored("evt_1", status="dead", runs=[("app.credit", "dead", 1)])
    desk.report(ledger, name="host:2", slots=16, busy=9, lost=2)
    desk.suspects(ledger, "shop.credit", 2)
    desk.wait_for_place(ledger, "shop.mail", 2)
    desk.fail_in_a_row(ledger, "shop.sms", 5, limit=5)
    pauses.pause(ledger, "handler", "shop\x1b[2J", "ann")

    lines = lines_of(hookonce)
    told = "\n".join(lines)

    assert {"suspects  shop.credit 2", "waiting for limit  shop.mail 2"} <= {*lines}
    assert lines[0] == "accepted  6 = 1 dead + 1 running + 4 waiting; 0 replayed"
    assert "stripe  dead  1" in lines
    assert lines[lines.index("workers") + 2].startswith("host:2  16  9  2  ")
    assert lines[lines.index("breakers") + 2].startswith("shop.sms  yes  5  0  20")
    assert re.search(r"^handler  shop\\x1b\[2J  person  ", told, re.MULTILINE)
    assert re.search(r"^handler  shop\.sms  breaker  ", told, re.MULTILINE)


def test_lists_are_tables_on_a_terminal_of_eighty_columns(hookonce, ledger, database_url, monkeypatch):
    monkeypatch.setattr(worker_slots, "LONG_AFTER", timedelta(milliseconds=100))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "99")
    desk.stop(ledger, "shop.orders.credit_account", 2)
    with desk.waiting(database_url) as pid:
        desk.report(ledger, ("shop.orders.credit_account", 7, pid))
        until(lambda: worker_slots.long_transactions(ledger))

        lines = [re.sub(r" {2,}", "  ", click.unstyle(line)) for line in hookonce("stats").lines]

    heading = "HANDLER  IS OPEN  FAILURES  WAITING  TRY AT  ERROR"
    assert lines[lines.index("breakers") + 1] == heading
    held = lines[lines.index("long transactions") + 2]
    assert re.fullmatch(r"shop\.orders\.credit_account  7  \d+\.\d", held)


def test_number_that_is_estimated_is_marked(hookonce, ledger):
    ledger.execute(
        "INSERT INTO hookonce.queue (event, received_at, source, type, due_at) "
        "SELECT n, now(), 'stripe', 'a', now() FROM generate_series(1, %s) AS n",
        [2 * totals.MAX_COUNTED],
    )

    assert any(re.fullmatch(r"stripe  received  ~\d+", line) for line in lines_of(hookonce))


def test_stats_is_imported_without_what_receives_events():
    heavy = "{'rq', 'requests', 'sqlalchemy', 'hookonce.receiver.intake.pipeline'}"
    program = f"import sys, hookonce.receiver.cli.commands.stats; print({heavy} & sys.modules.keys())"

    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout

    assert printed.strip() == "set()"
