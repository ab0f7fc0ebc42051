"""The outcome of a replay for an event in each state, and what it gives its runs."""

import pytest

from tests.support.outcomes import put_into_state


def state(here, number):
    event = here.rows("SELECT status, due_at <= now() FROM hookonce.event_states WHERE id = %s", number)
    runs = here.rows(
        "SELECT handler, status, attempts, cycle FROM hookonce.run_states WHERE event = %s ORDER BY handler",
        number,
    )
    return event[0], runs


def put(here, status, *runs, **changes):
    (number,) = here.deliver("evt_1", **changes)
    put_into_state(here.connection, number, status, runs)
    return number


def fates(here, number, **how):
    return [each["fate"] for each in here.ask("replay", events=[number], **how).json["outcomes"]]


def test_dead_event_gets_a_new_cycle_once_however_often_it_is_asked(here):
    number = put(here, "dead", ("a", "done", 1), ("b", "dead", 10))

    assert [fates(here, number), fates(here, "stripe:evt_1")] == [["replayed"], ["already_queued"]]

    assert state(here, number) == (("waiting", True), [("a", "done", 1, 1), ("b", "waiting", 0, 2)])
    assert here.rows("SELECT action, subject, detail->>'outcome' FROM hookonce.audit ORDER BY id") == [
        ("replay", f"event {number}", "replayed"),
        ("replay", f"event {number}", "already_queued"),
    ]


def test_done_run_is_run_once_more_once(here):
    number = put(here, "done", ("a", "done", 1))

    assert [fates(here, number, again=True) for _ in range(2)] == [["replayed"], ["already_queued"]]
    assert state(here, number) == (("waiting", True), [("a", "waiting", 0, 2)])


@pytest.mark.parametrize(
    ("status", "runs", "expected"),
    [
        ("dead", [("a", "done", 1), ("b", "dead", 10)], [("a", "done", 1, 1), ("b", "waiting", 0, 2)]),
        ("done", [("a", "done", 1)], [("a", "waiting", 0, 2)]),
    ],
)
def test_bulk_replay_runs_dead_runs_or_done_ones(here, status, runs, expected):
    number = put(here, status, *runs)
    bulk = here.ask("start_bulk_replay", filter={"status": status}).json["id"]

    here.ask("step_bulk_replay", bulk=bulk)

    assert state(here, number)[1] == expected


def test_run_that_waits_after_failures_gets_its_attempts_back(here):
    number = put(here, "waiting", ("a", "waiting", 3))

    assert fates(here, number) == ["replayed"]
    assert state(here, number) == (("waiting", True), [("a", "waiting", 0, 2)])


def test_running_run_is_left_alone(here):
    number = put(here, "running", ("a", "running", 1), ("b", "dead", 10))

    (outcome,) = here.ask("replay", events=[number]).json["outcomes"]

    assert outcome["left"] == ["a"]
    assert state(here, number) == (("running", True), [("a", "running", 1, 1), ("b", "waiting", 0, 2)])


@pytest.mark.parametrize(("status", "fate"), [("ignored", "replayed"), ("held", "released")])
def test_event_without_runs_is_due(here, status, fate):
    number = put(here, status)

    assert fates(here, number) == [fate]
    assert state(here, number) == (("received", True), [])


def test_event_whose_body_was_dropped_stays_as_it_is(here):
    number = put(here, "dead", ("a", "dead", 1))
    here.connection.execute("DELETE FROM hookonce.bodies")

    (outcome,) = here.ask("replay", events=[number]).json["outcomes"]

    assert (outcome["fate"], outcome["means"]) == (
        "body_dropped",
        "can't be replayed: its body was dropped by retention",
    )
    assert (state(here, number)[0], here.notified) == (("dead", None), False)


def test_event_that_can_still_not_be_read_stays_dead(here):
    (number,) = here.deliver("evt_1", type="unreadable", unreadable="bad_body: $.id is missing")

    assert fates(here, number) == ["unreadable"]
    assert (state(here, number)[0], here.notified) == (("dead", None), False)
