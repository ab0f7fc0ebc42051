import threading
import time
from datetime import timedelta

from sqlalchemy import text

from hookonce.jobs.handlers import GiveUp
from hookonce.jobs.plan import Plan
from hookonce.jobs.slots import pool as pools
from hookonce.jobs.slots.capacity import ClaimCapacity
from hookonce.receiver.ledger.runs import claims, due_cursor
from hookonce.receiver.ledger.runs.run_limits import BatchSize, RunLimit
from tests.support.inbox import effect
from tests.support.waiting import until

MADE_DUE_LATE = """
UPDATE hookonce.queue SET due_at = now() - interval '1 min'
WHERE event = (SELECT id FROM hookonce.events WHERE event_id = 'late')
"""


def statuses(inbox):
    return dict(inbox.rows("SELECT status, count(*) FROM hookonce.event_states GROUP BY 1"))


def are_done(inbox, count):
    until(lambda: statuses(inbox), {"done": count})


def test_every_event_is_done_once_by_many_slots(inbox, pool_of):
    inbox.on(effect)
    ids = [f"evt_{n:03}" for n in range(200)]
    inbox.deliver(*ids)

    with pool_of(8) as pool:
        pool.run_due()
        are_done(inbox, 200)

    assert inbox.effects() == ids
    assert {row[2:] for row in inbox.runs()} == {("done", 1)}


def test_runs_are_under_way_at_the_same_time(inbox, pool_of):
    together = threading.Barrier(3)

    def meets(_event, _tx):
        together.wait(10)

    inbox.on(meets)
    inbox.deliver("a", "b", "c")

    with pool_of(4) as pool:
        pool.run_due()
        are_done(inbox, 3)


def test_several_handlers_of_one_event_are_all_done(inbox, pool_of):
    def second(event, tx):
        tx.execute(text("INSERT INTO effects VALUES (:event || '/2')"), {"event": event.event_id})

    inbox.on(effect)
    inbox.on(second)
    ids = [f"evt_{n:02}" for n in range(40)]
    inbox.deliver(*ids)

    with pool_of(4) as pool:
        pool.run_due()
        are_done(inbox, 40)

    assert inbox.effects() == sorted([*ids, *(f"{each}/2" for each in ids)])


def test_quick_handler_goes_on_while_slow_ones_take_all_they_may(inbox, pool_of):
    enough = threading.Event()

    def slow(_event, _tx):
        enough.wait(60)

    inbox.on(slow, pattern="slow", timeout=timedelta(minutes=2))
    inbox.on(effect, pattern="quick")
    inbox.deliver(*(f"s{n}" for n in range(10)), type="slow")

    with pool_of(4) as pool:
        pool.run_due()
        until(lambda: inbox.rows("SELECT 1 FROM hookonce.run_states WHERE status = 'running'")[2:])
        pool.run_due(inbox.deliver("q", type="quick"))
        try:
            until(inbox.effects, ["q"])
        finally:
            enough.set()
        are_done(inbox, 11)

    assert inbox.effects() == ["q"]


def test_quick_handler_goes_on_while_two_slow_ones_take_the_same_event(inbox, pool_of):
    enough = threading.Event()

    def first(_event, _tx):
        enough.wait(60)

    def second(_event, _tx):
        enough.wait(60)

    for slow in (first, second):
        inbox.on(slow, pattern="slow", timeout=timedelta(minutes=2))
        inbox.registry.note(slow.__name__, timedelta(seconds=5))
    inbox.on(effect, pattern="quick")
    inbox.registry.note("effect", timedelta(milliseconds=1))
    inbox.deliver("s", type="slow")

    with pool_of(2) as pool:
        pool.run_due()
        until(lambda: inbox.rows("SELECT 1 FROM hookonce.run_states WHERE status = 'running'"))
        pool.run_due(inbox.deliver("q", type="quick"))
        try:
            until(inbox.effects, ["q"])
        finally:
            enough.set()
        are_done(inbox, 2)


def test_sibling_without_capacity_is_left_for_another_worker(inbox):
    def first(_event, _tx):
        pass

    def second(_event, _tx):
        pass

    for slow in (first, second):
        inbox.on(slow)
        inbox.registry.note(slow.__name__, timedelta(seconds=5))
    inbox.deliver("a")

    def claimed():
        capacity = ClaimCapacity(inbox.registry, slots=4, slow=1, tried=())
        claim = claims.claim(inbox.connection, Plan(inbox.registry, capacity))
        return [(run.handler, run.attempt) for run in claim.runs], claim.is_more

    assert claimed() == ([("first", 1)], True)
    assert inbox.rows(
        "SELECT handler, waits, token IS NULL, due_at <= now() FROM hookonce.queue ORDER BY n"
    ) == [
        ("first", None, False, True),
        ("second", None, True, True),
    ]
    assert claimed() == ([("second", 1)], False)


def test_all_slots_are_used_where_all_handlers_are_slow(inbox, pool_of):
    together = threading.Barrier(2)

    def slow(_event, _tx):
        together.wait(10)
        time.sleep(0.15)

    inbox.on(slow)
    inbox.deliver(*(f"evt_{n}" for n in range(6)))

    with pool_of(2) as pool:
        pool.run_due()
        are_done(inbox, 6)


def test_slow_runs_are_leased_ahead_and_leave_the_slot_that_is_kept_for_others(inbox, pool_of):
    at_once, under_way, seen = threading.Lock(), [], []

    def slow(event, _tx):
        with at_once:
            under_way.append(event.id)
            seen.append((len(under_way), 0))
        time.sleep(0.11)
        with at_once:
            under_way.remove(event.id)

    inbox.on(slow)
    inbox.on(effect, pattern="quick")
    inbox.deliver(*(f"evt_{n:03}" for n in range(120)), type="slow")

    def look():
        [(leased,)] = inbox.rows("SELECT count(*) FROM hookonce.queue WHERE token IS NOT NULL")
        seen.append((0, leased))
        return statuses(inbox)

    with pool_of(8) as pool:
        pool.run_due()
        until(look, {"done": 120})

    assert max(running for running, _ in seen) == 7
    assert max(leased for _, leased in seen) > 7


def test_failed_attempt_is_tried_again_and_gives_up_in_the_end(inbox, pool_of):
    def fails(event, tx):
        tx.execute(text("INSERT INTO effects VALUES (:event)"), {"event": event.event_id})
        raise ValueError("no")

    inbox.on(fails, attempts=3)
    inbox.deliver("a", "b")

    with pool_of(4) as pool:
        until(lambda: (pool.run_due(), statuses(inbox))[1], {"dead": 2})

    assert (inbox.effects(), inbox.runs()) == ([], [("a", "fails", "dead", 3), ("b", "fails", "dead", 3)])


def test_place_of_a_limit_is_taken_up_as_soon_as_it_is_free(inbox, pool_of):
    inbox.on(effect, limit=RunLimit(concurrency=1))
    ids = [f"evt_{n:02}" for n in range(30)]
    inbox.deliver(*ids)

    with pool_of(4) as pool:
        pool.run_due()  # and nobody tells it again
        are_done(inbox, 30)

    assert inbox.effects() == ids


def test_limit_of_a_handler_holds_in_a_pool(inbox, pool_of):
    at_once, most = 0, 0
    lock = threading.Lock()

    def counts(_event, _tx):
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        time.sleep(0.03)
        with lock:
            at_once -= 1

    inbox.on(counts, limit=RunLimit(concurrency=2))
    inbox.deliver(*(f"evt_{n}" for n in range(12)))

    with pool_of(8) as pool:
        until(lambda: (pool.run_due(), statuses(inbox))[1], {"done": 12})

    assert most <= 2


def test_claim_of_a_pool_says_how_many_may_have_been_started(inbox, pool_of, let_go):
    def stays(_event, _tx):
        let_go.wait(60)

    inbox.on(stays)
    inbox.deliver("a")

    with pool_of(2) as pool:
        pool.run_due()
        until(lambda: inbox.rows("SELECT slots, is_suspect FROM hookonce.claims"), [(2, False)])


def test_give_up_is_dead_at_once(inbox, pool_of):
    def gives_up(_event, _tx):
        raise GiveUp("never")

    inbox.on(gives_up)
    inbox.deliver("a")

    with pool_of(2) as pool:
        pool.run_due()
        until(lambda: statuses(inbox), {"dead": 1})

    assert inbox.runs() == [("a", "gives_up", "dead", 1)]


def test_batches_and_single_runs_go_on_side_by_side(inbox, pool_of):
    sizes = []

    def together(events, tx):
        sizes.append(len(events))
        for event in events:
            effect(event, tx)
        if any(event.event_id == "bad" for event in events):
            raise GiveUp

    inbox.on(together, pattern="track", batch=BatchSize(50))
    inbox.on(effect, pattern="other")
    tracked = [f"t_{n:03}" for n in range(120)]
    inbox.deliver(*tracked, "bad", type="track")
    inbox.deliver("one", "two", type="other")

    with pool_of(4) as pool:
        pool.run_due()
        until(lambda: statuses(inbox), {"done": 122, "dead": 1})

    assert inbox.effects() == sorted(["one", "two", *tracked])
    assert [row[0] for row in inbox.runs() if row[2] == "dead"] == ["bad"]
    assert max(sizes) == 50


def test_calls_for_help_come_one_at_a_time(pool_of, monkeypatch):
    monkeypatch.setattr(pools, "_CALL_INTERVAL", 60)
    calls = []
    with pool_of(2) as pool:
        monkeypatch.setattr(pool, "_notify", lambda: calls.append(1))
        for _ in range(3):
            pool.call_for_help()
        assert len(calls) == 1
        pool._calls_at -= 60  # noqa: SLF001  as if they had passed
        pool.call_for_help()
        assert len(calls) == 2


def test_batch_that_is_due_late_is_taken_while_all_slots_are_busy(inbox, pool_of, monkeypatch):
    monkeypatch.setattr(due_cursor, "FULL_LOOK_INTERVAL", timedelta(milliseconds=100))
    together, enough = threading.Barrier(3), threading.Event()

    def stays(event, _tx):
        if event.event_id != "first":
            together.wait(10)
            enough.wait(60)

    def collects(_events, _tx):
        pass

    inbox.on(stays, pattern="stays", timeout=timedelta(hours=1))
    inbox.on(collects, pattern="track", batch=BatchSize(10, timedelta(0)))
    inbox.deliver("first", type="stays")

    with pool_of(2) as pool:
        pool.run_due()
        are_done(inbox, 1)
        inbox.deliver("a", "b", type="stays")
        pool.run_due()
        together.wait(10)
        try:
            with inbox.connection.transaction():
                inbox.deliver("late", type="track")
                inbox.connection.execute(MADE_DUE_LATE)
            until(lambda: ("late", "collects", "done", 1) in inbox.runs())
        finally:
            enough.set()


def test_batch_takes_all_that_is_due_whichever_events_are_named(inbox, pool_of, monkeypatch):
    taken = []
    inbox.on(lambda events, _tx: taken.append(len(events)), batch=BatchSize(10, timedelta(0)))
    named, *_ = inbox.deliver(*"abc")

    with pool_of(2) as pool:
        claim = pool._claim  # noqa: SLF001  to have time for a batch between two claims

        def claim_later(ids, *given, **options):
            time.sleep(0 if ids else 0.3)
            return claim(ids, *given, **options)

        monkeypatch.setattr(pool, "_claim", claim_later)
        pool.run_due([named])
        are_done(inbox, 3)

    assert taken == [3]


def test_batch_that_is_full_calls_for_help(inbox, pool_of, monkeypatch):
    def collects(_events, _tx):
        pass

    inbox.on(collects, batch=BatchSize(4, timedelta(0)))
    calls = []

    with pool_of(2) as pool:
        monkeypatch.setattr(pool, "_notify", lambda: calls.append(1))
        inbox.deliver(*"abc")
        pool.run_due()
        are_done(inbox, 3)
        assert not calls

        inbox.deliver(*"defg")
        pool.run_due()
        are_done(inbox, 7)
        assert calls
