from datetime import UTC, datetime, timedelta

import pytest

from hookonce.receiver.dashboard.event_page.run_panels import MAX_ATTEMPTS, panels
from hookonce.receiver.dashboard.event_page.waterfall import MAX_ROWS, waterfall
from hookonce.receiver.ledger.queries.event_details import Detail, Run
from hookonce.receiver.ledger.queries.events import Event
from hookonce.receiver.ledger.results import CALL, AttemptLog, LogLine
from hookonce.receiver.ledger.steps import Step
from hookonce.receiver.ledger.waits import Wait

CAME = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOW = CAME + timedelta(hours=1)
HANDLER = "shop.credit"


def after(**span):
    return CAME + timedelta(**span)


def run(status, attempts=1, started=None, finished=None, **more):
    times = {"due_at": None, "lease_until": None, "result": None, "error": None} | more
    return Run(
        handler=HANDLER,
        status=status,
        attempts=attempts,
        cycle=1,
        started_at=started,
        finished_at=finished,
        **times,
    )


def failure(attempt, started, failed, cycle=1):
    return {
        "handler": HANDLER,
        "cycle": cycle,
        "attempt": attempt,
        "started_at": started,
        "failed_at": failed,
        "error": "ValueError: no\nmore",
        **dict.fromkeys(("issue", "traceback", "frames", "unreadable")),
    }


def step(name, started, finished):
    said = {"result": None, "note": None, "unreadable": None}
    times = {"started_at": started, "finished_at": finished}
    return Step.model_construct(handler=HANDLER, name=name, status="done", **times, **said)


def drawn(runs=(), failures=(), steps=(), now=NOW, logs=()):
    row = Event.model_construct(received_at=CAME)
    parts = {"runs": list(runs), "failures": list(failures), "steps": list(steps), "logs": list(logs)}
    found = Detail(event=row, body=None, conflicts=[], repeats=[], **parts)
    return waterfall(found, panels(found), now)


def rows(made):
    return [row for lines in made.by_handler.values() for each in lines for row in each]


def test_attempts_are_drawn_to_scale():
    made = drawn(
        [run("done", 2, after(milliseconds=200), after(milliseconds=400))],
        [failure(1, after(milliseconds=100), after(milliseconds=200))],
    )

    first, second = rows(made)
    bars = [made.scale.span(row.start, row.end) for row in (first, second)]

    assert [(bar.x, bar.width) for bar in bars] == [(25.0, 25.0), (50.0, 50.0)]
    assert [row.end - row.start for row in (first, second)] == [
        timedelta(milliseconds=100),
        timedelta(milliseconds=200),
    ]
    assert made.scale.gaps == []


def test_long_pause_becomes_a_gap_that_tells_its_length():
    made = drawn(
        [run("dead", 2, after(minutes=5), after(minutes=5, milliseconds=30))],
        [
            failure(1, after(milliseconds=10), after(milliseconds=40)),
            failure(2, after(minutes=5), after(minutes=5, milliseconds=30)),
        ],
    )

    first, second = rows(made)
    one, other = (made.scale.span(row.start, row.end) for row in (first, second))

    assert [gap.length for gap in made.scale.gaps] == [timedelta(minutes=5) - timedelta(milliseconds=40)]
    assert one.width == pytest.approx(other.width, abs=0.1)
    assert one.width > 30
    assert (second.state, second.waited) == ("dead", "backoff")


def test_attempt_whose_begin_is_not_known_is_marked_at_its_end():
    made = drawn([run("waiting", 1, due_at=after(hours=2))], [failure(1, None, after(seconds=3))])

    failed, following = rows(made)

    assert (failed.start, failed.end) == (None, after(seconds=3))
    assert (following.kind, following.name, following.end) == ("next", "Attempt 2", after(hours=2))


def test_steps_stand_below_the_attempt_that_did_them():
    made = drawn(
        [run("done", 2, after(seconds=2), after(seconds=3))],
        [failure(1, after(seconds=0), after(seconds=1))],
        [
            step("charge", after(milliseconds=200), after(milliseconds=700)),
            step("mail", after(seconds=2), after(seconds=3)),
        ],
    )

    assert [row.name for row in rows(made)] == ["Attempt 1", "charge", "Attempt 2", "mail"]


def test_traced_calls_stand_below_the_attempt_that_made_them():
    lines = [
        LogLine(at=100, level="", logger=CALL, text="POST api.stripe.com", took=250),
        LogLine(at=360, level="info", logger="shop", text="charged"),
        LogLine(at=400, level="error", logger=CALL, text="GET tax.example", took=90),
    ]
    made = drawn(
        [run("done", 2, after(seconds=2), after(seconds=3))],
        [failure(1, after(seconds=0), after(seconds=1))],
        [step("charge", after(seconds=2, milliseconds=50), after(seconds=2, milliseconds=380))],
        logs=[AttemptLog(handler=HANDLER, cycle=1, attempt=2, lines=lines).with_content()],
    )

    assert [(row.name, row.state, (row.end - row.start).total_seconds()) for row in rows(made)[2:]] == [
        ("charge", "done", 0.33),
        ("POST api.stripe.com", "done", 0.25),
        ("GET tax.example", "failed", 0.09),
    ]
    assert rows(made)[3].start == after(seconds=2, milliseconds=100)


def test_short_work_has_the_whole_width_and_a_short_wait_is_to_scale():
    made = drawn([run("done", 1, after(milliseconds=6), after(milliseconds=7))])

    bar = made.scale.span(rows(made)[-1].start, rows(made)[-1].end)

    assert made.scale.gaps == []
    assert (bar.x + bar.width, bar.width) == pytest.approx((100, 14.3), abs=0.1)


def test_short_pause_is_never_a_gap_and_a_long_one_is():
    gaps = [
        drawn([run("done", 1, after(milliseconds=pause), after(milliseconds=pause + 1))]).scale.gaps
        for pause in (45, 55)
    ]

    assert [len(each) for each in gaps] == [0, 1]


def test_time_that_is_still_to_come_is_no_part_of_the_length():
    made = drawn(
        [run("waiting", 1, due_at=after(hours=12))],
        [failure(1, after(seconds=0), after(seconds=1))],
        now=after(seconds=20),
    )

    assert made.length == timedelta(seconds=20)
    assert made.edges[1] == timedelta(hours=12)
    assert drawn().length == timedelta()


def test_running_attempt_shows_how_far_its_lease_reaches():
    made = drawn([run("running", 1, after(seconds=1), lease_until=after(seconds=31))], now=after(seconds=2))

    (row,) = rows(made)

    assert (row.start, row.end, row.until) == (after(seconds=1), after(seconds=2), after(seconds=31))
    (pause,) = made.scale.gaps
    assert pause.length == timedelta(seconds=29)
    lease = made.scale.span(row.end, row.until)
    assert (lease.x, lease.width) == (pause.x, pause.width)
    assert made.has_lease
    assert made.length == timedelta(seconds=2)
    assert made.scale.at(after(seconds=31)) == 100


def test_very_many_attempts_are_bounded_and_told():
    failures = [failure(n, after(minutes=n), after(minutes=n, seconds=1)) for n in range(1, 301)]

    made = drawn([run("dead", 300, after(minutes=300), after(minutes=300, seconds=1))], failures)

    assert len(rows(made)) == MAX_ATTEMPTS
    assert made.left_out == 250
    assert rows(made)[-1].name == "Attempt 300"
    spans = [made.scale.span(row.start, row.end) for row in rows(made)]
    assert all(span.x >= 0 and span.x + span.width <= 100 for span in spans)


def test_rows_of_many_handlers_are_bounded_together():
    failures = [
        failure(n, after(minutes=n), after(minutes=n, seconds=1)) | {"handler": handler}
        for n in range(1, 51)
        for handler in ("a", "b")
    ]
    runs = [run("dead", 50).model_copy(update={"handler": handler}) for handler in ("a", "b")]

    made = drawn(runs, failures)

    assert (len(rows(made)), made.left_out) == (MAX_ROWS, 100 - MAX_ROWS)


@pytest.mark.parametrize("cycle", [1, 2])
def test_replay_begins_the_count_of_attempts_anew(cycle):
    made = drawn(
        [run("dead", 1, after(hours=1), after(hours=1)).model_copy(update={"cycle": cycle})],
        [failure(1, None, after(seconds=1)), failure(1, after(hours=1), after(hours=1, seconds=1), 2)][
            :cycle
        ],
    )

    assert [row.name for row in rows(made)] == ["Attempt 1", "Replay 1"][:cycle]


def test_event_that_nobody_has_taken_is_only_received():
    assert rows(drawn()) == []


@pytest.mark.parametrize(("answer", "state"), [(7, "done"), (None, "failed")])
def test_wait_for_another_event_is_a_row_from_its_first_call_to_its_answer(answer, state):
    wait = Wait(
        name="ci",
        source="github",
        type="check_run",
        since=after(seconds=1),
        until=after(days=3),
        ended_at=after(minutes=5),
        answer=answer,
    )
    done = run("done", started=after(minutes=5), finished=after(minutes=5, seconds=1), awaited=[wait])

    (row,) = [row for row in rows(drawn([done])) if row.kind == "awaited"]

    assert (row.name, row.state, row.waited) == ("ci", state, "for github check_run")
    assert row.wait == timedelta(minutes=4, seconds=59)
