import json
import re
import signal
import subprocess
import sys
import time
from itertools import count
from subprocess import PIPE
from types import SimpleNamespace

import click
import pytest

from hookonce.receiver.cli.replay import waiting
from tests.support.outcomes import put_into_state

pytestmark = pytest.mark.usefixtures("inbox")


@pytest.fixture
def state(ledger):
    def read(number):
        event = ledger.execute(
            "SELECT status, due_at <= now() FROM hookonce.event_states WHERE id = %s", [number]
        ).fetchone()
        runs = ledger.execute(
            "SELECT handler, status, attempts, cycle FROM hookonce.run_states WHERE event = %s ORDER BY handler",
            [number],
        )
        return event, runs.fetchall()

    return read


def test_replay_leaves_what_is_done_alone_and_tells_what_ran_and_when(hookonce, stored, state, rings):
    number = stored("evt_1", status="done", runs=[("a", "done", 1), ("b", "done", 2)])

    refused = hookonce("replay", number)

    assert (refused.code, rings()) == (3, 0)
    ago = r"\((now|\ds ago)\)"
    assert re.search(f"event {number} is done and was left alone: a {ago}, b {ago}", refused.err)
    assert f"hookonce replay {number} --again" in refused.err
    assert state(number) == (("done", None), [("a", "done", 1, 1), ("b", "done", 2, 1)])


def test_replay_reports_what_it_did_before_a_name_that_is_refused(hookonce, stored, state, monkeypatch):
    monkeypatch.setattr("hookonce.receiver.cli.replay.named.PAGE_SIZE", 1)
    number = stored("evt_1", status="held")
    stored("evt_2", status="held")

    replayed = hookonce("replay", "--json", number, "evt_")

    assert (replayed.code, [each["id"] for each in replayed.documents]) == (2, [number])
    assert state(number)[0][0] == "received"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["1", "--status", "dead"], 2),
        (["1", "--since", "2h"], 2),
        (["--status", "dead"], 2),  # stdin is no terminal: it must not wait for an answer
        (["--status", "held", "--yes"], 0),
        (["12345"], 4),
        (["stripe:evt_1", "12345"], 3),
    ],
)
def test_replay_ends_with_the_code_that_says_how_much_was_done(hookonce, stored, arguments, code):
    stored("evt_1", status="dead", runs=[("a", "dead", 1)])

    assert hookonce("replay", *arguments).code == code


def test_replay_rings_the_bell_once_for_many(hookonce, stored, rings):
    numbers = [stored(f"evt_{n}", status="held") for n in range(3)]

    hookonce("replay", *numbers)

    assert rings() == 1


def test_replay_says_of_what_and_replays_nothing_in_a_dry_run(hookonce, stored, state):
    number = stored("evt_1", status="dead", runs=[("a", "dead", 1)])
    stored("evt_2", status="dead", type="other", runs=[("a", "dead", 1)])
    stored("evt_3", status="dead", type="other", runs=[("a", "dead", 1)])

    tried = hookonce("replay", "--source", "stripe", "--dry-run", "--json")

    assert tried.code == 0
    assert tried.documents == [
        {"type": "other", "status": "dead", "events": 2},
        {"type": "invoice.paid", "status": "dead", "events": 1},
    ]
    assert tried.err.splitlines() == ["3 events match", "this is the plan; nothing was done"]
    assert state(number)[0] == ("dead", None)


def test_replay_of_a_named_event_replays_nothing_in_a_dry_run(hookonce, stored, state):
    number = stored("evt_1", status="dead", runs=[("a", "dead", 10)])

    tried, partly, none = (hookonce("replay", *ids, "--dry-run") for ids in [[number], [number, "x"], ["x"]])

    assert tried.err.splitlines() == [
        f"to replay: 1 event ({number})",
        "this is the plan; nothing was done",
        f"event {number} replayed: a",
    ]
    assert [tried.code, partly.code, none.code] == [0, 3, 4]
    assert state(number) == (("dead", None), [("a", "dead", 10, 1)])


@pytest.mark.parametrize(
    "options",
    [
        ["1", "--wait", "--dry-run"],
        ["1", "--rate", "1/s"],
        ["--continue", "1", "--dry-run"],
        ["--status", "done", "--again"],
    ],
)
def test_replay_refuses_options_that_would_do_nothing(hookonce, options):
    assert hookonce("replay", *options).code == 2


def test_replay_keeps_to_the_rate(hookonce, stored, ledger):
    for n in range(4):
        stored(f"evt_{n}", status="dead", runs=[("a", "dead", 1)])

    started = time.monotonic()
    replayed = hookonce("replay", "--status", "dead", "--rate", "10/s", "--yes")

    assert replayed.code == 0
    assert time.monotonic() - started > 0.29
    assert ledger.execute("SELECT rate, replayed FROM hookonce.bulk_replays").fetchall() == [(10, 4)]


def test_replay_stopped_by_ctrl_c_says_how_to_go_on_and_goes_on(hookonce, stored, state, inbox):
    numbers = [stored(f"evt_{n}", status="dead", runs=[("a", "dead", 1)]) for n in range(3)]
    command = [
        sys.executable,
        "-m",
        "hookonce.receiver.cli",
        "replay",
        "--status",
        "dead",
        "--rate",
        "1/m",
        "--yes",
        "--json",
    ]
    with subprocess.Popen(command, cwd=inbox, stdout=PIPE, stderr=PIPE, text=True) as process:
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)

    assert (process.returncode, first["id"]) == (3, numbers[0])
    assert "stopped; continue with `hookonce replay --continue 1`" in said
    assert [state(number)[1][0][3] for number in numbers] == [2, 1, 1]

    resumed = hookonce("replay", "--continue", "1", "--rate", "100/s", "--json")

    assert [document["id"] for document in resumed.documents] == numbers[1:]
    assert [state(number)[1][0][3] for number in numbers] == [2, 2, 2]
    assert hookonce("replay", "--continue", "1").code == 0
    assert hookonce("replay", "--continue", "2").code == 4


def test_replay_waits_and_tells_how_many_succeeded_and_died(hookonce, stored, ledger):
    for n in range(3):
        stored(f"evt_{n}", status="dead", runs=[("a", "dead", 1)])
    ledger.execute(
        "CREATE FUNCTION worker() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "WITH gone AS (DELETE FROM hookonce.queue WHERE event = ANY(NEW.events) RETURNING event, handler, cycle) "
        "INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at) "
        "SELECT event, handler, cycle, CASE e.event_id WHEN 'evt_1' THEN 'dead' ELSE 'done' END, 1, now() "
        "FROM gone JOIN hookonce.events e ON e.id = gone.event; RETURN NEW; END $$"
    )
    ledger.execute(
        "CREATE TRIGGER works AFTER INSERT ON hookonce.bulk_steps FOR EACH ROW EXECUTE FUNCTION worker()"
    )

    replayed = hookonce("replay", "--status", "dead", "--yes", "--wait")

    assert replayed.code == 3
    assert "replayed 3, done 2, died again 1, of 3 that matched" in replayed.err


def test_bar_of_a_bulk_replay_moves_in_one_line_while_its_events_end(hookonce, stored, ledger, monkeypatch):
    for n in range(3):
        stored(f"evt_{n}", status="dead", runs=[("a", "dead", 1)])

    def worker():
        ledger.execute(
            "WITH gone AS (DELETE FROM hookonce.queue WHERE ctid = (SELECT min(ctid) FROM hookonce.queue) "
            "RETURNING event, handler, cycle) "
            "INSERT INTO hookonce.runs (event, handler, cycle, status, attempts, finished_at) "
            "SELECT event, handler, cycle, 'done', 1, now() FROM gone"
        )
        return 0

    monkeypatch.setattr(waiting, "interval", worker)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")

    drawn = click.unstyle(hookonce("replay", "--status", "dead", "--yes").err)

    assert list(dict.fromkeys(re.findall(r"still open (\d)", drawn))) == ["3", "2", "1"]
    assert [line for line in re.split(r"[\r\n]", drawn) if len(line) > 80] == []


def test_replay_lists_the_bulk_replays(hookonce, stored):
    stored("evt_1", status="held")
    hookonce("replay", "--status", "held", "--source", "stripe", "--yes")

    listed = hookonce("replays", "--json")

    [bulk] = listed.documents
    assert (bulk["matched"], bulk["replayed"]) == (1, 1)
    assert bulk["filter"].items() >= {"source": "stripe", "status": "held"}.items()
    assert "until" in bulk["filter"], "what comes later is not meant"
    assert "source stripe, status held" in hookonce("replays").lines[1]


@pytest.mark.parametrize("text", ["20", "0/s", "-1/s", "x/s"])
def test_rate_says_what_it_expects_when_it_can_not_read(hookonce, text):
    refused = hookonce("replay", "--status", "dead", "--rate", text)

    assert refused.code == 2
    assert f"{text!r} is not a rate; expected a whole number" in refused.err


def test_replay_of_an_event_that_changed_since_it_was_seen_leaves_it_alone(hookonce, stored, state):
    number = stored("evt_1", status="done", runs=[("a", "done", 1)])

    replayed = hookonce("replay", number, "--again", "--seen", "another")

    assert "has changed since it was shown and was left alone" in replayed.err
    assert state(number) == (("done", None), [("a", "done", 1, 1)])


@pytest.mark.parametrize("chosen", [["1"], ["--status", "dead", "--yes"]])
def test_replay_waits_no_longer_than_a_worker_may_come(hookonce, stored, monkeypatch, chosen):
    monkeypatch.setattr("hookonce.receiver.cli.replay.waiting.IDLE_TIMEOUT", 0.1)
    stored("evt_1", status="dead", runs=[("a", "dead", 1)])

    replayed = hookonce("replay", *chosen, "--wait")

    assert replayed.code == 3
    assert "no worker has" in replayed.err
    assert "start `hookonce worker`" in replayed.err


def test_replay_waits_for_a_named_event_while_a_worker_has_its_handler(hookonce, stored, ledger, monkeypatch):
    number = stored("evt_1", status="dead", runs=[("a", "dead", 1)])
    ledger.execute(
        "INSERT INTO hookonce.handlers (handler, place, pattern, attempts, timeout) VALUES ('a', '*', '*', 1, '1 s')"
    )
    monkeypatch.setattr("hookonce.receiver.cli.replay.waiting.IDLE_TIMEOUT", 0.1)
    looks = iter(range(4))

    def works(_):
        if next(looks) == 3:
            put_into_state(ledger, number, "done")

    clock = SimpleNamespace(sleep=works, monotonic=count().__next__)  # of this module alone
    monkeypatch.setattr("hookonce.receiver.cli.replay.waiting.time", clock)
    replayed = hookonce("replay", number, "--wait")

    assert (replayed.code, replayed.err.splitlines()[-1]) == (0, f"event {number} is done")
    assert replayed.err.count("1 still to end; `hookonce doctor`") == 1
