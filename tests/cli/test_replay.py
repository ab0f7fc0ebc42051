import json
import signal
import subprocess
import sys
import time
from subprocess import PIPE

import pytest

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


@pytest.fixture
def audited(ledger):
    def read():
        rows = ledger.execute("SELECT action, subject, detail FROM hookonce.audit ORDER BY id").fetchall()
        return [(action, subject, detail["outcome"]) for action, subject, detail in rows]

    return read


def test_replay_gives_a_dead_event_a_new_cycle_once_however_often_it_is_asked(
    hookonce, stored, state, audited
):
    number = stored("evt_1", status="dead", runs=[("a", "done", 1), ("b", "dead", 10)])

    codes = [hookonce("replay", number).code, hookonce("replay", "stripe:evt_1").code]

    assert codes == [0, 0]
    assert state(number) == (("waiting", True), [("a", "done", 1, 1), ("b", "waiting", 0, 2)])
    subject = f"event {number}"
    assert audited() == [("replay", subject, "replayed"), ("replay", subject, "already_queued")]


def test_replay_leaves_what_is_done_alone_and_tells_what_ran_and_when(hookonce, stored, state, rings):
    number = stored("evt_1", status="done", runs=[("a", "done", 1), ("b", "done", 2)])

    refused = hookonce("replay", number)

    assert (refused.code, rings()) == (3, 0)
    assert f"event {number} is done and was left alone: a (now), b (now)" in refused.err
    assert f"hookonce replay {number} --again" in refused.err
    assert state(number) == (("done", None), [("a", "done", 1, 1), ("b", "done", 2, 1)])


def test_replay_runs_what_is_done_once_more_if_one_says_so(hookonce, stored, state):
    number = stored("evt_1", status="done", runs=[("a", "done", 1)])

    codes = [hookonce("replay", number, "--again").code for _ in range(2)]

    assert codes == [0, 0]
    assert state(number) == (("waiting", True), [("a", "waiting", 0, 2)])


def test_replay_names_the_command_of_a_client(hookonce, stored, ledger):
    number = stored("evt_1", status="done", runs=[("a", "done", 1)])
    ledger.execute("UPDATE hookonce.events SET provider = 'command'")

    assert f"the command of a client, event {number} is done" in hookonce("replay", number).err


def test_bulk_replay_of_dead_events_leaves_their_done_runs_alone(hookonce, stored, state):
    number = stored("evt_1", status="dead", runs=[("a", "done", 1), ("b", "dead", 10)])

    assert hookonce("replay", "--status", "dead", "--yes").code == 0

    assert state(number)[1] == [("a", "done", 1, 1), ("b", "waiting", 0, 2)]


def test_bulk_replay_of_done_events_runs_them_once_more(hookonce, stored, state):
    number = stored("evt_1", status="done", runs=[("a", "done", 1)])

    assert hookonce("replay", "--status", "done", "--yes").code == 0

    assert state(number)[1] == [("a", "waiting", 0, 2)]


def test_replay_gives_a_run_that_waits_after_failures_its_attempts_back(hookonce, stored, state):
    number = stored("evt_1", status="waiting", runs=[("a", "waiting", 3)])

    hookonce("replay", number)

    assert state(number) == (("waiting", True), [("a", "waiting", 0, 2)])


def test_replay_leaves_a_running_run_alone_and_says_so(hookonce, stored, state):
    number = stored("evt_1", status="running", runs=[("a", "running", 1), ("b", "dead", 10)])

    replayed = hookonce("replay", number)

    assert replayed.code == 3
    assert "running and left alone: a" in replayed.err
    assert state(number) == (("running", True), [("a", "running", 1, 1), ("b", "waiting", 0, 2)])


@pytest.mark.parametrize("status", ["ignored", "held"])
def test_replay_makes_an_event_without_runs_due(hookonce, stored, state, audited, status):
    number = stored("evt_1", status=status)

    assert hookonce("replay", number).code == 0

    assert state(number) == (("received", True), [])
    assert audited()[0][0] == ("release" if status == "held" else "replay")


def test_replay_refuses_an_event_whose_body_was_dropped(hookonce, stored, ledger, state):
    number = stored("evt_1", status="done", runs=[("a", "done", 1)])
    ledger.execute("DELETE FROM hookonce.bodies")

    replayed = hookonce("replay", number)

    assert (replayed.code, state(number)[0]) == (1, ("done", None))
    assert "its body was dropped by retention" in replayed.err


def test_replay_refuses_what_the_provider_still_can_not_read(hookonce, stored, state, rings):
    number = stored("evt_1", type="unreadable", unreadable="bad_body: $.id is missing")

    replayed = hookonce("replay", number)

    assert (replayed.code, state(number)[0], rings()) == (1, ("dead", None), 0)
    assert "still can't be read" in replayed.err


def test_replay_takes_all_in_a_status_that_match(hookonce, stored, state):
    wanted = [stored(f"evt_{n}", status="dead", runs=[("a", "dead", 1)]) for n in range(3)]
    others = [
        stored("evt_x", status="dead", type="other", runs=[("a", "dead", 1)]),
        stored("evt_y", status="held"),
    ]

    replayed = hookonce(
        "replay", "--status", "dead", "--type", "invoice.*", "--since", "2h", "--yes", "--json"
    )

    assert replayed.code == 0
    assert [document["id"] for document in replayed.documents] == wanted
    assert {state(number)[0] for number in wanted} == {("waiting", True)}
    assert [state(number)[0][0] for number in others] == ["dead", "held"]


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
    assert "3 events match; nothing was replayed" in tried.err
    assert state(number)[0] == ("dead", None)


def test_replay_of_a_named_event_replays_nothing_in_a_dry_run(hookonce, stored, state):
    number = stored("evt_1", status="dead", runs=[("a", "dead", 10)])

    tried, partly, none = (hookonce("replay", *ids, "--dry-run") for ids in [[number], [number, "x"], ["x"]])

    assert "nothing was replayed" in tried.err
    assert tried.lines[1].split() == [str(number), "stripe", "evt_1", "invoice.paid", "dead"]
    assert [tried.code, partly.code, none.code] == [0, 3, 4]
    assert state(number) == (("dead", None), [("a", "dead", 10, 1)])


@pytest.mark.parametrize(
    "options",
    [
        ["1", "--wait"],
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
        _, said = process.communicate(timeout=10)

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


def test_replay_lists_the_bulk_replays(hookonce, stored):
    stored("evt_1", status="held")
    hookonce("replay", "--status", "held", "--source", "stripe", "--yes")

    listed = hookonce("replay", "--list", "--json")

    [bulk] = listed.documents
    assert (bulk["matched"], bulk["replayed"], bulk["filter"]) == (
        1,
        1,
        {"source": "stripe", "status": "held"},
    )
    assert "source stripe, status held" in hookonce("replay", "--list").lines[1]


@pytest.mark.parametrize("text", ["20", "0/s", "20/d", "-1/s", "x/s"])
def test_rate_says_what_it_expects_when_it_can_not_read(hookonce, text):
    refused = hookonce("replay", "--status", "dead", "--rate", text)

    assert refused.code == 2
    assert "20/s, 600/m" in refused.err
