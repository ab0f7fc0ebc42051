import json
import signal
import subprocess
import sys
from subprocess import PIPE

import pytest

from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.queries.tail import Tail
from tests.support.outcomes import put_into_state

pytestmark = pytest.mark.usefixtures("inbox")


def test_tail_shows_what_comes_and_what_becomes_of_it_until_ctrl_c(inbox, stored, ledger):
    stored("evt_0")
    stored("evt_1")
    command = [
        sys.executable,
        "-m",
        "hookonce.receiver.cli",
        "tail",
        "--json",
        "--last",
        "1",
        "--every",
        "0.05",
    ]
    with subprocess.Popen(command, cwd=inbox, stdout=PIPE, stderr=PIPE, text=True) as process:

        def next_line():
            event = json.loads(process.stdout.readline())
            return event["event_id"], event["status"]

        seen = [next_line()]
        number = stored("evt_2")
        seen.append(next_line())
        ledger.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                       " AND datname = current_database()")  # fmt: skip
        put_into_state(ledger, number, "done")
        seen.append(next_line())
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate(timeout=10)

    assert seen == [("evt_1", "received"), ("evt_2", "received"), ("evt_2", "done")]
    assert (process.returncode, rest) == (0, "")
    assert said.startswith("the database is away")


def test_tail_shows_an_event_that_was_committed_after_one_with_a_higher_id(stored, ledger):
    now = [0.0]
    tail = Tail(ledger, Filter(), lambda: now[0])
    numbers = [stored(f"evt_{n}") for n in range(3)]
    ledger.execute("CREATE TABLE late AS TABLE hookonce.events")
    ledger.execute("DELETE FROM hookonce.events WHERE id = %s", [numbers[0]])

    first = [row.id for row in tail.look(ledger)]
    ledger.execute(
        "INSERT INTO hookonce.events OVERRIDING SYSTEM VALUE SELECT * FROM late WHERE id = %s", [numbers[0]]
    )
    second = [row.id for row in tail.look(ledger)]
    now[0] = 60.0

    assert (first, second) == (numbers[1:], numbers[:1])
    assert [tail.look(ledger), tail.look(ledger)] == [[], []]


def test_tail_by_status_shows_what_takes_it_on(stored, ledger):
    tail = Tail(ledger, Filter(status="dead", type="invoice.*"))
    wanted, other = stored("evt_1"), stored("evt_2", type="other")

    assert tail.look(ledger) == []
    for each in (wanted, other):
        put_into_state(ledger, each, "dead")

    assert [row.id for row in tail.look(ledger)] == [wanted]
    assert tail.look(ledger) == []
