"""A source that keeps no body: it is there until the last handler has succeeded, and then it is gone."""

from datetime import timedelta

from psycopg import sql

from hookonce.jobs.handlers import GiveUp
from hookonce.receiver.ledger.maintenance.retention import NOT_TAKEN_FOR, Retention, RetentionPass
from hookonce.receiver.ledger.replay.events import ReplayOutcome, replay
from hookonce.receiver.ledger.runs.run_limits import BatchSize

NONE_KEPT = "keep_body = false"
MARK = "whoever-reads-this-has-found-the-body"
TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'hookonce'"


def event(number=1, **more):
    return {"id": f"evt_{number}", "type": "t", "card": MARK} | more


def anywhere(shop):
    """The tables in which the body, or a part of it, can be found."""
    found = []
    for (name,) in shop.rows(TABLES):
        plain = shop.ledger.execute(
            sql.SQL("SELECT count(*) FROM hookonce.{} AS t WHERE t::text LIKE ANY (%s)").format(
                sql.Identifier(name)
            ),
            [[f"%{MARK}%", f"%{MARK.encode().hex()}%"]],
        ).fetchone()
        if plain[0]:
            found.append(name)
    return found


def bodies(shop):
    [(count,)] = shop.rows("SELECT count(*) FROM hookonce.bodies")
    return count


def test_body_is_there_for_the_handler_and_gone_with_its_end(open_sources):
    shop, seen = open_sources(NONE_KEPT), []

    def take(event, _):
        seen.append((event.data["card"], bodies(shop)))

    shop.on(take)
    shop.status(event())
    assert bodies(shop) == 1
    shop.work()

    assert seen == [(MARK, 1)]
    assert (bodies(shop), anywhere(shop)) == (0, [])
    assert shop.rows("SELECT status FROM hookonce.event_states") == [("done",)]
    assert shop.status(event()) == "duplicate"


def test_body_stays_until_the_last_of_several_handlers(open_sources):
    shop, failures = open_sources(NONE_KEPT), [1]

    def first(event, _):
        assert event.data["card"]

    def second(event, _):
        assert event.data["card"]
        if failures:
            failures.pop()
            raise ArithmeticError

    shop.on(first)
    shop.on(second, backoff=(timedelta(hours=1), timedelta(hours=1)))
    shop.status(event())
    shop.work()
    between = bodies(shop), shop.rows("SELECT status FROM hookonce.run_states ORDER BY handler")
    shop.rows("UPDATE hookonce.queue SET due_at = now() RETURNING 1")
    shop.work()

    assert between == (1, [("done",), ("waiting",)])
    assert bodies(shop) == 0


def test_body_of_a_dead_event_stays_for_its_replay_and_goes_with_that(open_sources):
    shop, failures = open_sources(NONE_KEPT), [1]

    def take(*_):
        if failures:
            failures.pop()
            raise GiveUp("not today")

    shop.on(take)
    shop.status(event())
    shop.work()
    [(number, status)] = shop.rows("SELECT id, status FROM hookonce.event_states")
    assert (status, bodies(shop)) == ("dead", 1)

    [outcome] = replay(shop.ledger, [number], "the test")
    shop.work()

    assert outcome.fate is ReplayOutcome.REPLAYED
    assert bodies(shop) == 0


def test_bodies_that_a_batch_took_are_gone_with_its_end_but_for_those_that_others_need(open_sources):
    shop, seen = open_sources(NONE_KEPT), []

    def together(events, _):
        seen.append([(each.data["card"], bodies(shop)) for each in events])

    def alone(event, _):
        if event.type == "other":
            raise ArithmeticError

    shop.on(together, batch=BatchSize(10, timedelta(0)))
    shop.on(alone, backoff=(timedelta(hours=1), timedelta(hours=1)))
    for number, kind in enumerate(("t", "t", "other")):
        shop.status(event(number, type=kind))
    shop.work()

    assert seen == [[(MARK, 3)] * 3]
    assert shop.rows("SELECT event_id FROM hookonce.bodies JOIN hookonce.event_states ON id = event") == [
        ("evt_2",)
    ]


def test_replay_says_that_there_is_no_body_since_none_is_kept(open_sources):
    shop = open_sources(NONE_KEPT)
    shop.on(lambda *_: None)
    shop.status(event())
    shop.work()
    [(number,)] = shop.rows("SELECT id FROM hookonce.event_states")

    [outcome] = replay(shop.ledger, [number], "the test")

    assert outcome.fate is ReplayOutcome.BODY_NOT_KEPT
    assert shop.rows("SELECT status FROM hookonce.event_states") == [("done",)]


def test_sources_that_keep_bodies_keep_them(open_sources):
    shop = open_sources()
    shop.on(lambda *_: None)
    shop.status(event())
    shop.work()

    assert (bodies(shop), anywhere(shop) != []) == (1, True)


def test_body_that_nobody_takes_goes_when_a_deploy_would_be_over(open_sources):
    shop = open_sources(NONE_KEPT)
    shop.status(event())
    shop.work()
    assert shop.rows("SELECT status FROM hookonce.event_states") == [("ignored",)]
    prune(shop)
    assert bodies(shop) == 1

    for table in ("events", "bodies"):
        shop.ledger.execute(
            sql.SQL("UPDATE hookonce.{} SET received_at = received_at - %s").format(sql.Identifier(table)),
            [NOT_TAKEN_FOR],
        )
    prune(shop)

    assert bodies(shop) == 0


def prune(shop):
    assert list(RetentionPass(Retention.of(shop.settings)).steps(shop.ledger))


def test_neither_conflicts_nor_rejections_keep_one(open_sources):
    shop = open_sources(NONE_KEPT)
    shop.on(lambda *_: None)
    shop.status(event())
    shop.send(event(more=1))
    shop.send(event(2), X_Sig="f" * 64)
    shop.work()
    shop.intake.background_writer.close()

    assert shop.rows("SELECT count(*) FROM hookonce.conflicts") == [(1,)]
    assert shop.rows("SELECT count(*) FROM hookonce.rejected") == [(1,)]
    assert anywhere(shop) == []
