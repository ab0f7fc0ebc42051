from dataclasses import dataclass
from datetime import timedelta

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.queries.events import RunRow
from hookonce.receiver.ledger.runs import claimed, claims, due_events, run_end, transitions
from hookonce.receiver.ledger.runs.run_end import AttemptResult, LeaseLost
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event

BUDGET = timedelta(seconds=2)
LONGEST = timedelta(seconds=30) + claimed.LEASE_MARGIN
"""How long a run of `Plan` is ours once it is started."""
DONE = AttemptResult("done")
FAILED = AttemptResult("waiting", error="RuntimeError: no", delay=timedelta(0))


@dataclass(frozen=True)
class Plan:
    name: str
    attempts: int = 3
    timeout: timedelta = timedelta(seconds=30)
    limit: object = None
    is_long: bool = False
    batch: object = None


class Planner:
    def __init__(self, *plans):
        self.plans = plans

    def matching(self, *_):
        return self.plans

    def is_slow(self, _source, _provider, type_):
        return type_ == "slow"

    def named(self, name):
        return next((plan for plan in self.plans if plan.name == name), None)


@pytest.fixture
def connection(database_url):
    with connections.connect(database_url) as connection:
        yield connection


@pytest.fixture
def stored(connection):
    def put(*ids):
        answers = store(connection, [new_event(event_id) for event_id in ids])
        return [answers["stripe", event_id].id for event_id in ids]

    return put


def claim(connection, *names, **options):
    return claims.claim(connection, Planner(*(Plan(name) for name in names)), budget=BUDGET, **options)


def expire(connection):
    connection.execute("UPDATE hookonce.runs SET due_at = now(), lease_until = now() WHERE token IS NOT NULL")
    connection.execute("UPDATE hookonce.events SET due_at = now() WHERE due_at IS NOT NULL")


def state(connection):
    return connection.execute(
        "SELECT e.event_id, e.status, r.handler, r.status, r.attempts FROM hookonce.event_states e LEFT "
        "JOIN hookonce.run_states r ON r.event = e.id "
        "ORDER BY e.id, r.handler"
    ).fetchall()


def end(connection, run, ending, following=None):
    with connection.transaction():
        return run_end.end(connection, run, ending, following)


def test_claim_leases_a_batch_and_starts_one_run_only(connection, stored):
    stored("a", "b")

    claimed = claim(connection, "h")

    assert [run.event.event_id for run in claimed.runs] == ["a", "b"]
    assert state(connection) == [("a", "running", "h", "running", 1), ("b", "running", "h", "waiting", 0)]


def test_claim_takes_nothing_that_another_has(connection, stored):
    stored("a")
    claim(connection, "h")

    assert claim(connection, "h").runs == []


def test_claim_takes_the_named_events_only(connection, stored):
    _, second = stored("a", "b")

    assert [run.event.event_id for run in claim(connection, "h", ids=[second]).runs] == ["b"]


def test_claim_ignores_an_event_that_nobody_takes(connection, stored):
    stored("a")

    assert claim(connection).events == 1
    assert state(connection) == [("a", "ignored", None, None, None)]


def test_claim_takes_events_of_an_expired_lease_one_at_a_time(connection, stored):
    stored("a", "b", "c")
    claim(connection, "h")
    expire(connection)

    claimed = claim(connection, "h")

    assert [run.event.event_id for run in claimed.runs] == ["a"]
    assert [row[4] for row in state(connection)] == [2, 0, 0]


def test_claim_buries_a_run_that_was_lost_too_often(connection, stored):
    stored("poison")
    for _ in range(3):
        assert claim(connection, "h").runs
        expire(connection)

    assert claim(connection, "h").runs == []
    assert state(connection) == [("poison", "dead", "h", "dead", 3)]
    assert connection.execute("SELECT count(*) FROM hookonce.failures").fetchone() == (3,)
    assert connection.execute("SELECT due_at FROM hookonce.event_states").fetchone() == (None,)


def test_claim_puts_off_a_handler_it_does_not_know(connection, stored):
    stored("a")
    run = claim(connection, "new").runs[0]
    end(connection, run, FAILED)

    assert claim(connection, "old").runs == []
    assert state(connection) == [("a", "waiting", "new", "waiting", 1)]


@pytest.mark.parametrize(("kind", "name"), [("source", "stripe"), ("handler", "h")])
def test_claim_runs_nothing_that_is_paused(connection, stored, kind, name):
    stored("a")
    connection.execute("INSERT INTO hookonce.pauses (kind, name) VALUES (%s, %s)", [kind, name])

    assert claim(connection, "h").runs == []


def test_claim_lets_the_runs_of_a_paused_handler_wait(connection, stored):
    stored("a")
    connection.execute("INSERT INTO hookonce.pauses (kind, name) VALUES ('handler', 'h')")

    claim(connection, "h", "other")

    assert state(connection) == [("a", "running", "h", "waiting", 0), ("a", "running", "other", "running", 1)]


def test_claim_runs_a_source_whose_name_a_paused_handler_has(connection, stored):
    stored("a")
    connection.execute("INSERT INTO hookonce.pauses (kind, name) VALUES ('handler', 'stripe')")

    assert len(claim(connection, "h").runs) == 1


def test_claim_keeps_when_an_attempt_began_until_the_next_begins(connection, stored):
    stored("a", "b")
    first, second = claim(connection, "h").runs
    end(connection, first, FAILED, second)
    end(connection, second, FAILED)

    assert len(claim(connection, "h").runs) == 2

    assert connection.execute("SELECT count(*) FROM hookonce.run_states WHERE started_at IS NULL").fetchone() == (
        0,
    )


def test_end_marks_done_and_starts_the_next(connection, stored):
    stored("a", "b")
    first, second = claim(connection, "h").runs

    started = end(connection, first, AttemptResult("done", {"ok": 1}), second)

    assert started
    assert state(connection) == [("a", "done", "h", "done", 1), ("b", "running", "h", "running", 1)]
    assert connection.execute("SELECT result FROM hookonce.run_states WHERE status = 'done'").fetchone() == (
        {"ok": 1},
    )


def test_end_keeps_the_event_running_until_its_last_run(connection, stored):
    stored("a")
    first, second = claim(connection, "h1", "h2").runs

    end(connection, first, AttemptResult("dead", error="GiveUp: no"), second)
    assert state(connection)[0][1] == "running"
    end(connection, second, DONE)

    assert state(connection) == [("a", "dead", "h1", "dead", 1), ("a", "dead", "h2", "done", 1)]


def test_end_writes_down_a_failure_and_when_to_try_again(connection, stored):
    stored("a")
    run = claim(connection, "h").runs[0]

    end(connection, run, AttemptResult("waiting", error="boom", delay=timedelta(hours=1)))

    row = connection.execute(
        "SELECT status, due_at - now() > interval '59 minutes' FROM hookonce.event_states"
    ).fetchone()
    assert row == ("waiting", True)
    assert connection.execute("SELECT handler, attempt, error FROM hookonce.failures").fetchall() == [
        ("h", 1, "boom")
    ]


def test_end_counts_no_attempt_when_the_handler_asks_for_time(connection, stored):
    stored("a")

    end(
        connection,
        claim(connection, "h").runs[0],
        AttemptResult("waiting", delay=timedelta(0), counted=False),
    )

    assert state(connection) == [("a", "waiting", "h", "waiting", 0)]


@pytest.mark.parametrize("ending", [DONE, FAILED])
def test_end_refuses_a_worker_whose_lease_ran_out(connection, stored, ending):
    stored("a")
    stale = claim(connection, "h").runs[0]
    expire(connection)
    fresh = claim(connection, "h").runs[0]

    with pytest.raises(LeaseLost):
        end(connection, stale, ending)

    end(connection, fresh, DONE)
    assert state(connection) == [("a", "done", "h", "done", 2)]


def test_end_refuses_a_run_that_was_not_started(connection, stored):
    stored("a", "b")
    _, unstarted = claim(connection, "h").runs

    with pytest.raises(LeaseLost):
        end(connection, unstarted, DONE)


def test_end_starts_nothing_that_another_has_taken(connection, stored):
    stored("a", "b")
    first, second = claim(connection, "h").runs
    connection.execute(
        "UPDATE hookonce.runs SET token = gen_random_uuid() WHERE event = %s", [second.event.id]
    )

    assert not end(connection, first, DONE, second)


def test_end_leases_what_it_starts_for_all_of_its_time(connection, stored):
    stored("a", "b")
    first, second = claim(connection, "h").runs

    end(connection, first, DONE, second)

    (spans,) = connection.execute(
        "SELECT lease_until - started_at, due_at - started_at FROM hookonce.run_states WHERE status = 'running'"
    ).fetchall()
    assert [round(span.total_seconds()) for span in spans] == [LONGEST.total_seconds()] * 2


def test_release_leaves_what_another_has_taken_meanwhile(connection, stored):
    stored("a")
    stale = claim(connection, "h1", "h2").runs
    expire(connection)
    first, second = claim(connection, "h1", "h2").runs

    released = transitions.release(connection, stale)

    assert released == []
    assert end(connection, first, DONE, second)


def test_release_makes_unstarted_runs_due_again_uncharged(connection, stored):
    stored("a", "b", "c")
    started, *rest = claim(connection, "h").runs

    released = transitions.release(connection, [started, *rest])

    assert released == [run.event.id for run in rest]
    assert [run.event.event_id for run in claim(connection, "h").runs] == ["b", "c"]
    assert state(connection)[0] == ("a", "running", "h", "running", 1)


def test_wake_ignored_takes_up_what_this_worker_takes(connection, stored):
    (event,) = stored("a")
    claim(connection)

    assert transitions.requeue_ignored(connection, Planner(Plan("h")), timedelta(minutes=15)) == [event]
    assert claim(connection, "h").runs


def test_load_body_fetches_what_was_too_heavy_to_claim(connection):
    body = b"x" * (due_events.HEAVY + 1)
    store(connection, [new_event("big", body=body)])

    (run,) = claim(connection, "h").runs

    assert run.event.body is None
    assert transitions.load_body(connection, run.event) == (body, None)


def test_end_commits_nothing_of_a_worker_whose_lease_ran_out(connection, stored):
    stored("a")
    stale = claim(connection, "h").runs[0]
    expire(connection)
    claim(connection, "h")

    connection.execute("BEGIN")
    connection.execute("UPDATE hookonce.events SET account = 'an effect'")
    with pytest.raises(LeaseLost):
        run_end.end(connection, stale, DONE)
    connection.execute("ROLLBACK")

    assert connection.execute("SELECT account FROM hookonce.event_states").fetchone() == (None,)


def test_end_tells_a_lost_lease_from_a_commit_that_divides_by_zero(connection, stored):
    stored("a")
    run = claim(connection, "h").runs[0]
    connection.execute("CREATE TABLE effects (n int)")
    connection.execute(
        "CREATE FUNCTION divide() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM 1 / NEW.n; RETURN NEW; END'"
    )
    connection.execute(
        "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION divide()"
    )

    connection.execute("BEGIN")
    connection.execute("INSERT INTO effects VALUES (0)")
    with pytest.raises(psycopg.errors.DivisionByZero):
        run_end.end(connection, run, DONE)


def test_end_begins_the_next_transaction_if_asked_to(connection, stored):
    stored("a", "b")
    first, second = claim(connection, "h").runs

    connection.execute("BEGIN")
    run_end.end(connection, first, DONE, second, chain=True)

    assert connection.info.transaction_status is TransactionStatus.INTRANS
    connection.execute("ROLLBACK")
    assert [row[1] for row in state(connection)] == ["done", "running"]


def test_claim_sets_right_an_event_that_fell_due_before_its_running_run(connection, stored):
    stored("a", "b")
    first, second = claim(connection, "h").runs
    end(connection, first, DONE, second)
    connection.execute("UPDATE hookonce.events SET due_at = now() WHERE event_id = 'b'")

    assert claim(connection, "h")[:2] == ([], 1)
    assert connection.execute(
        "SELECT e.due_at = r.due_at FROM hookonce.event_states e JOIN hookonce.run_states r ON r.event = e.id "
        "WHERE e.event_id = 'b'"
    ).fetchone() == (True,)
    end(connection, second, DONE)
    assert [row[1] for row in state(connection)] == ["done", "done"]


def test_claim_takes_an_event_of_a_slow_handler_alone_and_after_the_quick(connection):
    for event_id, kind in [("slow-1", "slow"), ("quick-1", "x"), ("slow-2", "slow"), ("quick-2", "x")]:
        store(connection, [new_event(event_id, type=kind)])

    batches = [[run.event.event_id for run in claim(connection, "h").runs] for _ in range(4)]

    assert batches == [["quick-1", "quick-2"], ["slow-1"], ["slow-2"], []]


def test_claim_takes_a_slow_one_first_if_it_waits_longest_and_is_asked_to(connection):
    for event_id, kind in [("slow", "slow"), ("quick", "x")]:
        store(connection, [new_event(event_id, type=kind)])

    first = claim(connection, "h", quick_first=False)

    assert ([run.event.event_id for run in first.runs], first.is_more) == (["slow"], True)


@pytest.mark.parametrize(("depth", "shown"), [(50, list), (900, str)])
def test_result_that_is_nested_too_deeply_to_be_written_again_is_shown_as_text(depth, shown):
    result = {}
    for _ in range(depth):
        result = [result, "text"]

    assert isinstance(RunRow("h", "done", 1, 1, None, None, None, None, result, None).result, shown)
