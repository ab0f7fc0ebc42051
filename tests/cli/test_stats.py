"""`hookonce stats` prints every figure, and a table of each list that is not empty."""

import re
import subprocess
import sys

import pytest

from hookonce.receiver.ledger import pauses
from hookonce.receiver.ledger.stats import totals
from tests.support import desk

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
    assert lines[lines.index("breakers") + 2].startswith("shop.sms  yes  5  0  -  ")
    assert re.search(r"^handler  shop\\x1b\[2J  person  ", told, re.MULTILINE)
    assert re.search(r"^handler  shop\.sms  breaker  ", told, re.MULTILINE)


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
