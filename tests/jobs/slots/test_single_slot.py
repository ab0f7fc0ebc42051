import logging
import time
from datetime import timedelta

import psycopg
import redis

from hookonce.jobs import claimer, stopping
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from tests.support.inbox import effect


def test_drain_runs_every_handler_of_an_event_once(inbox):
    def second(event, tx):
        effect(event, tx)

    inbox.on(effect)
    inbox.on(second)
    inbox.deliver("a", "b")

    assert inbox.work() == 4
    assert inbox.effects() == ["a", "a", "b", "b"]
    assert inbox.work() == 0


def test_drain_goes_on_with_whatever_is_due_after_the_events_that_rang(inbox):
    inbox.on(effect)
    _, second = inbox.deliver("a", "b")

    inbox.work([second])

    assert inbox.effects() == ["a", "b"]


def test_one_failing_handler_does_not_keep_another_from_running(inbox):
    def broken(*_):
        raise RuntimeError("no")

    inbox.on(broken, attempts=1)
    inbox.on(effect)
    inbox.deliver("a")

    inbox.work()

    assert inbox.runs() == [("a", "broken", "dead", 1), ("a", "effect", "done", 1)]
    assert inbox.effects() == ["a"]


def test_drain_calls_for_help_when_more_is_due_than_a_batch(inbox, redis_url, monkeypatch):
    monkeypatch.setattr(claimer, "CLAIM_BATCH", 1)
    inbox.on(effect)
    inbox.deliver("a", "b")

    inbox.work()

    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("rq:queue:hookonce") == 1


def test_worker_says_which_event_no_handler_takes(inbox, caplog):
    inbox.on(effect, pattern="invoice.*")
    inbox.deliver("a", type="invoice.paid")
    (ignored,) = inbox.deliver("b", type="charge.failed")

    with caplog.at_level(logging.INFO):
        inbox.work()

    said = [each for each in caplog.records if each.getMessage() == "ignored"]
    assert [(each.event, each.source, each.type) for each in said] == [(ignored, "stripe", "charge.failed")]


def test_worker_runs_at_once_what_others_had_ignored(inbox):
    inbox.deliver("a")
    inbox.work()
    inbox.on(effect)

    inbox.drains[0].requeue_ignored()

    assert inbox.effects() == ["a"]


def test_look_at_what_others_had_ignored_leaves_no_transaction_open(inbox, caplog):
    inbox.on(effect)
    inbox.deliver("a")
    inbox.work()

    inbox.drains[0].requeue_ignored()

    inbox.work()
    assert "was thrown away" not in caplog.text


def test_drain_over_its_budget_lets_go_and_rings(inbox, redis_url, monkeypatch):
    monkeypatch.setattr(claimer, "DRAIN_BUDGET", timedelta(seconds=0.05))

    def slow(event, tx):
        effect(event, tx)
        time.sleep(0.06)

    inbox.on(slow)
    inbox.deliver("a", "b", "c")

    assert inbox.work() == 1
    assert [row[2:] for row in inbox.runs()] == [("done", 1), ("waiting", 0), ("waiting", 0)]
    assert inbox.rows("SELECT count(*) FROM hookonce.event_states WHERE due_at <= now()") == [(2,)]
    with redis.Redis.from_url(redis_url) as client:
        assert client.llen("rq:queue:hookonce") == 1


def test_drain_whose_budget_is_over_at_once_runs_a_batch_all_the_same_and_ends(inbox, redis_url, monkeypatch):
    monkeypatch.setattr(claimer, "DRAIN_BUDGET", timedelta(0))
    inbox.on(lambda _events, _tx: None, pattern="track", batch=BatchSize(2))
    inbox.deliver("a", "b", "c", type="track")

    assert [inbox.work() for _ in range(3)] == [2, 1, 0]
    with redis.Redis.from_url(redis_url) as client:
        client.delete("rq:queue:hookonce")
        inbox.work()
        assert client.llen("rq:queue:hookonce") == 0


def test_handlers_of_batches_have_their_turns_however_long_each_batch_takes(inbox, monkeypatch):
    monkeypatch.setattr(claimer, "DRAIN_BUDGET", timedelta(0))
    taken = []

    def first(_events, _tx):
        taken.append("first")

    def second(_events, _tx):
        taken.append("second")

    for handler in (first, second):
        inbox.on(handler, batch=BatchSize(2))
    inbox.deliver(*"abcdef")

    for _ in range(4):
        inbox.work()

    assert taken == ["first", "second"] * 2


def test_drain_asked_to_stop_finishes_one_attempt_and_lets_go_of_the_rest(inbox):
    def stopper(event, tx):
        effect(event, tx)
        stopping.stopping.set()

    inbox.on(stopper)
    inbox.deliver("a", "b")

    assert inbox.work() == 1
    assert [row[2:] for row in inbox.runs()] == [("done", 1), ("waiting", 0)]


def test_drain_goes_on_when_its_connection_was_cut(inbox):
    inbox.on(effect)
    inbox.deliver("a")
    inbox.work()
    inbox.connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
        "AND datname = current_database()"
    )
    inbox.deliver("b")

    inbox.work()
    inbox.work()

    assert inbox.effects() == ["a", "b"]


def test_drain_says_once_that_the_ledger_is_away(inbox, caplog, monkeypatch):
    inbox.on(effect)
    inbox.work()
    monkeypatch.setattr(claimer.claims, "claim", away)

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            inbox.work()
        monkeypatch.undo()
        inbox.work()

    assert [record.getMessage().split(",")[0] for record in caplog.records] == [
        "the ledger is away",
        "the ledger is back",
    ]


def away(*_, **__):
    raise psycopg.OperationalError


def test_drain_does_not_let_quick_events_wait_for_slow_ones(inbox):
    order = []

    def slow(event, _):
        order.append(event.event_id)
        inbox.registry.note("slow", timedelta(seconds=1))

    def quick(event, _):
        order.append(event.event_id)

    inbox.on(slow, pattern="slow")
    inbox.on(quick, pattern="quick")
    inbox.registry.note("slow", timedelta(seconds=1))
    for n in range(3):
        inbox.deliver(f"slow-{n}", type="slow")
    inbox.deliver(*[f"quick-{n}" for n in range(5)], type="quick")

    inbox.work()

    assert order == [f"quick-{n}" for n in range(5)] + [f"slow-{n}" for n in range(3)]


def test_suspects_have_their_share_of_each_round_and_no_more(inbox, monkeypatch):
    monkeypatch.setattr(claimer, "CLAIM_BATCH", 2)
    order = []

    def handler(event, _tx):
        order.append(event.type)

    inbox.on(handler)
    inbox.deliver(*(f"s{n}" for n in range(6)), type="suspect")
    inbox.connection.execute("UPDATE hookonce.queue SET handler = 'handler', waits = 'suspect'")
    inbox.deliver(*(f"o{n}" for n in range(6)), type="other")

    inbox.work()

    assert order == ["other", "other", "suspect", "suspect"] * 3
