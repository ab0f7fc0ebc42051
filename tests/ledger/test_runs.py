from dataclasses import dataclass
from datetime import timedelta

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from hookonce.jobs.plan import Plan as ClaimPlan
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.queries.event_details import Run
from hookonce.receiver.ledger.runs import claims, due_rows, ends, failed_attempts, ignored, leases, takeover
from hookonce.receiver.ledger.runs.claimed import LEASE, LeaseLost
from hookonce.receiver.ledger.runs.ends import AttemptResult, Ended
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from hookonce.receiver.ledger.store import store
from tests.support import claiming
from tests.support.claiming import end
from tests.support.new_event import new_event

NO_TIME = timedelta(0)
DONE = AttemptResult("done")
FAILED = AttemptResult("waiting", error="RuntimeError: no", delay=NO_TIME)


@dataclass(frozen=True)
class Plan:
    name: str
    limit: object = None
    batch: object = None


class Planner:
    def __init__(self, *plans):
        self.plans = plans

    def __iter__(self):
        return iter(self.plans)

    def matching(self, *_):
        return self.plans

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
    return claiming.claim(connection, Planner(*map(Plan, names)), **options)


def claim_suspect(connection, *names):
    return claiming.claim_suspect(connection, Planner(*map(Plan, names)))


def expire(connection):
    claiming.lapse(connection)
    takeover.take_over(connection, WorkerEnd(handlers=claiming.Attempts(3)))


def state(connection):
    return connection.execute(
        "SELECT e.event_id, e.status, r.handler, r.status, r.attempts FROM hookonce.event_states e LEFT "
        "JOIN hookonce.run_states r ON r.event = e.id "
        "ORDER BY e.id, r.handler"
    ).fetchall()


def test_claim_leases_all_that_there_is_room_for(connection, stored):
    stored("a", "b")

    claimed = claim(connection, "h")

    assert [run.event.event_id for run in claimed.runs] == ["a", "b"]
    assert len({run.token for run in claimed.runs}) == 1
    assert state(connection) == [("a", "running", "h", "running", 1), ("b", "running", "h", "running", 1)]


def test_claim_leases_for_the_time_of_a_lease_and_leaves_the_due_time_alone(connection, stored):
    stored("a")
    before = connection.execute("SELECT due_at FROM hookonce.queue").fetchone()

    claim(connection, "h")

    assert connection.execute("SELECT due_at FROM hookonce.queue").fetchone() == before
    assert connection.execute("SELECT lease_until - made_at FROM hookonce.claims").fetchone() == (LEASE,)


def test_claim_takes_nothing_that_another_has(connection, stored):
    stored("a")
    claim(connection, "h")

    assert not claim(connection, "h").runs


def test_claim_takes_the_named_events_only(connection, stored):
    _, second = stored("a", "b")

    assert [run.event.event_id for run in claim(connection, "h", ids=[second]).runs] == ["b"]


def test_claim_ignores_an_event_that_nobody_takes(connection, stored):
    stored("a")

    assert claim(connection).met == 1
    assert state(connection) == [("a", "ignored", None, None, None)]


def test_what_may_have_been_started_of_a_lost_claim_is_run_alone_and_the_rest_is_due(connection, stored):
    stored("a", "b", "c")
    claim(connection, "h")
    expire(connection)

    assert [run.event.event_id for run in claim(connection, "h").runs] == ["b", "c"]
    assert claim_suspect(connection, "h").event.event_id == "a"
    assert [row[4] for row in state(connection)] == [1, 1, 1]


def test_run_that_was_lost_too_often_is_dead(connection, stored):
    stored("poison")
    claim(connection, "h")
    expire(connection)
    for _ in range(3):
        assert claim_suspect(connection, "h")
        expire(connection)

    assert claim_suspect(connection, "h") is None
    assert state(connection) == [("poison", "dead", "h", "dead", 3)]
    assert connection.execute("SELECT count(*) FROM hookonce.failures").fetchone() == (3,)
    assert connection.execute("SELECT due_at FROM hookonce.event_states").fetchone() == (None,)


def test_claim_puts_off_a_handler_it_does_not_know(connection, stored):
    stored("a")
    run = claim(connection, "new").runs[0]
    end(connection, run, FAILED)

    assert not claim(connection, "old").runs
    assert state(connection) == [("a", "waiting", "new", "waiting", 1)]


@pytest.mark.parametrize(("kind", "name"), [("source", "stripe"), ("handler", "h")])
def test_claim_runs_nothing_that_is_paused(connection, stored, kind, name):
    stored("a")
    connection.execute("INSERT INTO hookonce.pauses (kind, name) VALUES (%s, %s)", [kind, name])

    assert not claim(connection, "h").runs


def test_claim_lets_the_runs_of_a_paused_handler_wait(connection, stored):
    stored("a")
    connection.execute("INSERT INTO hookonce.pauses (kind, name) VALUES ('handler', 'h')")

    claim(connection, "h", "other")

    assert state(connection) == [("a", "running", "h", "waiting", 0), ("a", "running", "other", "running", 1)]


def test_claim_runs_a_source_whose_name_a_paused_handler_has(connection, stored):
    stored("a")
    connection.execute("INSERT INTO hookonce.pauses (kind, name) VALUES ('handler', 'stripe')")

    assert len(claim(connection, "h").runs) == 1


def test_end_takes_the_run_out_of_the_queue_and_keeps_what_came_of_it(connection, stored):
    stored("a", "b")
    first, _ = claim(connection, "h").runs

    end(connection, first, AttemptResult("done", {"ok": 1}))

    assert state(connection) == [("a", "done", "h", "done", 1), ("b", "running", "h", "running", 1)]
    assert connection.execute("SELECT result FROM hookonce.runs").fetchall() == [({"ok": 1},)]
    assert connection.execute("SELECT count(*) FROM hookonce.queue").fetchone() == (1,)


def test_end_keeps_the_event_running_until_its_last_run(connection, stored):
    stored("a")
    first, second = claim(connection, "h1", "h2").runs

    end(connection, first, AttemptResult("dead", error="GiveUp: no"))
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


def test_end_refuses_a_worker_whose_lease_ran_out(connection, stored):
    stored("a")
    (stale,) = claim(connection, "h").runs
    expire(connection)
    fresh = claim_suspect(connection, "h")

    with pytest.raises(LeaseLost):
        end(connection, stale, DONE)

    connection.execute("ROLLBACK")
    end(connection, fresh, DONE)
    assert state(connection) == [("a", "done", "h", "done", 1)]


def test_failure_lasts_as_long_as_its_attempt_however_long_its_transaction_was_open(connection, stored):
    stored("a")
    (run,) = claim(connection, "h").runs

    with connection.transaction():
        connection.execute("SELECT pg_sleep(0.02)")
        failed_attempts.fail(connection, [run], [FAILED], timedelta(milliseconds=7))

    took = "SELECT round(extract(epoch FROM failed_at - started_at), 3)::float FROM hookonce.failures"
    assert connection.execute(took).fetchone() == (0.007,)


def test_failure_of_a_worker_whose_lease_ran_out_changes_nothing(connection, stored):
    stored("a")
    (stale,) = claim(connection, "h").runs
    expire(connection)
    claim_suspect(connection, "h")

    with connection.transaction():
        assert failed_attempts.fail(connection, [stale], [FAILED]) == {}

    assert state(connection) == [("a", "running", "h", "running", 1)]
    assert connection.execute("SELECT count(*) FROM hookonce.failures").fetchone() == (0,)


def test_run_whose_lease_is_over_and_that_nobody_has_taken_ends(connection, stored):
    stored("a")
    (late,) = claim(connection, "h").runs
    claiming.lapse(connection)

    end(connection, late, DONE)

    assert state(connection) == [("a", "done", "h", "done", 1)]


def test_claim_that_is_renewed_is_not_taken_over(connection, stored):
    stored("a")
    (run,) = claim(connection, "h").runs
    claiming.lapse(connection)

    assert leases.renew(connection, [run.token]) == {run.token}

    assert takeover.take_over(connection) == 0
    assert leases.are_ours(connection, [run])


def test_renewal_leaves_the_claims_of_others_as_they_are(connection, stored):
    stored("a")
    (ours,) = claim(connection, "h").runs
    stored("b")
    claim(connection, "h")
    claiming.lapse(connection)

    assert leases.renew(connection, [ours.token]) == {ours.token}

    assert takeover.take_over(connection) == 1


def test_claim_that_was_taken_over_is_not_renewed(connection, stored):
    stored("a")
    (run,) = claim(connection, "h").runs
    expire(connection)

    assert leases.renew(connection, [run.token]) == set()


def test_release_leaves_what_another_has_taken_meanwhile(connection, stored):
    stored("a", "b")
    stale = claim(connection, "h").runs
    expire(connection)
    (fresh,) = claim(connection, "h").runs

    assert leases.release(connection, stale) == []
    assert leases.are_ours(connection, [fresh])


def test_release_makes_unstarted_runs_due_again_uncharged(connection, stored):
    stored("a", "b", "c")
    started, *rest = claim(connection, "h").runs

    released = leases.release(connection, rest)

    assert released == [run.event.id for run in rest]
    assert [run.event.event_id for run in claim(connection, "h").runs] == ["b", "c"]
    assert state(connection)[0] == ("a", "running", "h", "running", 1)
    assert leases.are_ours(connection, [started])


def test_wake_ignored_takes_up_what_this_worker_takes(connection, stored):
    (event,) = stored("a")
    claim(connection)

    assert ignored.requeue(connection, Planner(Plan("h")).matching, timedelta(minutes=15)) == [event]
    assert claim(connection, "h").runs


def test_load_body_fetches_what_was_too_heavy_to_claim(connection):
    body = b"x" * (due_rows.HEAVY + 1)
    store(connection, [new_event("big", body=body)])

    (run,) = claim(connection, "h").runs

    assert run.event.body is None
    assert leases.load_body(connection, run.event) == (body, None)


def test_end_commits_nothing_of_a_worker_whose_lease_ran_out(connection, stored):
    stored("a")
    (stale,) = claim(connection, "h").runs
    expire(connection)

    connection.execute("BEGIN")
    connection.execute("UPDATE hookonce.events SET account = 'an effect'")
    with pytest.raises(LeaseLost):
        ends.end(connection, Ended([stale], [DONE], NO_TIME))
    connection.execute("ROLLBACK")

    assert connection.execute("SELECT account FROM hookonce.events").fetchone() == (None,)


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
        ends.end(connection, Ended([run], [DONE], NO_TIME))


def test_end_begins_the_next_transaction_if_asked_to(connection, stored):
    stored("a")
    (run,) = claim(connection, "h").runs

    connection.execute("BEGIN")
    ends.end(connection, Ended([run], [DONE], NO_TIME), chain=True)

    assert connection.info.transaction_status is TransactionStatus.INTRANS
    connection.execute("ROLLBACK")
    assert [row[1] for row in state(connection)] == ["done"]


def test_claim_leaves_what_there_is_no_room_for_to_others(connection, stored):
    class OneOnly(claiming.Room):
        def lanes(self, handlers):
            return [None if number else 0 for number in range(len(handlers))]

    stored("a", "b")
    planner, room = Planner(Plan("h")), OneOnly(1)

    claimed = claims.claim(connection, ClaimPlan(planner, room))

    assert [run.event.event_id for run in claimed.runs] == ["a"]
    assert claimed.is_more
    assert state(connection)[1] == ("b", "received", None, None, None)


def test_run_that_is_left_of_an_event_met_first_is_claimed_once(connection, stored):
    class SecondOnly(claiming.Room):
        def lanes(self, _handlers):
            return [None, 0]

    stored("a")
    planner, room = Planner(Plan("first"), Plan("second")), SecondOnly(1)

    claimed = claims.claim(connection, ClaimPlan(planner, room))

    assert [run.handler for run in claimed.runs] == ["second"]
    assert [run.handler for run in claim(connection, "first", "second").runs] == ["first"]


@pytest.mark.parametrize(("depth", "shown"), [(50, list), (900, str)])
def test_result_that_is_nested_too_deeply_to_be_written_again_is_shown_as_text(depth, shown):
    result = {}
    for _ in range(depth):
        result = [result, "text"]

    assert isinstance(
        Run(
            handler="h",
            status="done",
            attempts=1,
            cycle=1,
            due_at=None,
            lease_until=None,
            started_at=None,
            finished_at=None,
            result=result,
            error=None,
        )
        .with_content()
        .result,
        shown,
    )
