import json
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import Session

from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.desk.replays import ReplayRequest, replay
from hookonce.receiver.ledger import entities
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.handlers import register_handlers
from hookonce.receiver.ledger.maintenance import erasure
from hookonce.receiver.ledger.maintenance.retention import Retention, RetentionPass
from hookonce.receiver.ledger.stats import counters, run_durations
from hookonce.receiver.ledger.stats.counters import Kind, Tally
from hookonce.receiver.monitoring import ledger_metrics
from hookonce.receiver.source import FOREVER
from tests.support.inbox import effect
from tests.support.ordered import OWN, deliver, order, save


def save_in_session(event, session: Session):
    save(event, session)


async def save_async(event, tx: AsyncConnection):
    await tx.execute(
        text("INSERT INTO effects VALUES (:event)"), {"event": f"{event.subject.version:03} {event.event_id}"}
    )


def save_by_driver(event, tx):
    tx.connection.driver_connection.execute(
        "INSERT INTO effects VALUES (%s)", [f"{event.subject.version:03} {event.event_id}"]
    )


HANDLERS = [save, save_in_session, save_async, save_by_driver]


def results(inbox):
    return dict(
        inbox.rows(
            "SELECT e.event_id, r.result FROM hookonce.runs r JOIN hookonce.events e ON e.id = r.event"
        )
    )


@pytest.mark.parametrize("handler", HANDLERS)
def test_older_event_is_skipped_and_says_which_is_newer(inbox, handler):
    inbox.on(handler, **OWN)

    newer, _ = deliver(inbox, order("b", 2), order("a", 1))
    inbox.work()

    assert inbox.effects() == ["002 b"]
    assert results(inbox) == {"b": None, "a": {"skipped": "stale", "newest": newer}}
    assert {run[2] for run in inbox.runs()} == {"done"}


def test_failed_attempt_takes_the_raise_back(inbox):
    def fails(event, tx):
        if event.event_id == "b":
            raise LookupError("no")
        save(event, tx)

    inbox.on(fails, **OWN, attempts=1)
    deliver(inbox, order("b", 2), order("a", 1))

    inbox.work()

    assert inbox.effects() == ["001 a"]


def test_flagged_event_is_handled_and_told_apart(inbox):
    def tell(event, _):
        return [event.is_stale, *event.subject]

    inbox.on(tell, **(OWN | {"stale": "flag"}))
    deliver(inbox, order("b", 2), order("a", 1), order("c", 3))

    inbox.work()

    assert results(inbox) == {"b": [False, "o1", 2], "a": [True, "o1", 1], "c": [False, "o1", 3]}


def test_of_equal_versions_the_later_in_the_ledger_is_newer(inbox):
    inbox.on(save, **OWN)
    deliver(inbox, order("a", 1), order("b", 1), order("c", 1))
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() - (interval '1 s' * event)")

    inbox.work()

    assert inbox.effects() == ["001 c"]


def test_event_that_was_newest_is_handled_again_when_replayed(inbox):
    inbox.on(save, **OWN)
    (event,) = deliver(inbox, order("a", 1))
    inbox.work()
    inbox.connection.execute(
        "INSERT INTO hookonce.queue (event, received_at, source, type, handler, cycle, due_at) "
        "SELECT id, received_at, source, type, 'save', 2, now() FROM hookonce.events"
    )

    inbox.work([event])

    assert inbox.effects() == ["001 a", "001 a"]


@pytest.mark.parametrize(
    "other",
    [{"of": "o2"}, {"account": "other"}, {"source": "other", "provider": "stripe"}],
    ids=["entity", "account", "source"],
)
def test_entities_accounts_and_sources_are_told_apart(inbox, other):
    inbox.on(save, **OWN)
    deliver(inbox, order("b", 2), order("a", 1, **other))

    inbox.work()

    assert results(inbox) == {"a": None, "b": None}


def test_handlers_do_not_skip_for_one_another(inbox):
    def second(event, tx):
        if event.event_id == "b":
            raise LookupError("no")
        save(event, tx)

    inbox.on(save, **OWN)
    inbox.on(second, **OWN, attempts=1)
    deliver(inbox, order("b", 2), order("a", 1))

    inbox.work()

    assert inbox.effects() == ["001 a", "002 b"]


@pytest.mark.parametrize(
    ("version", "of"),
    [
        *((each, "o1") for each in (2**63, -1, 1.5, "NaN", [1], None, True)),
        *((each, "o1") for each in ("2026-01-01T00:00:00", "2999-01-01T00:00:00Z")),
        *((1, each) for each in ("", None, "x" * 10_000, "a\0b", ["o1"], {})),
    ],
)
def test_event_without_a_version_or_an_entity_runs_and_is_counted(inbox, version, of):
    def tell(event, _):
        return event.subject

    inbox.on(tell, **OWN)
    deliver(inbox, order("a", 5), order("b", version, of=of))

    inbox.work()

    assert results(inbox)["b"] is None
    assert counted(inbox, "unguarded") == [("tell", 1)]
    assert inbox.rows("SELECT version FROM hookonce.entities") == [(5,)]


def counted(inbox, what):
    found = inbox.rows("SELECT what, source, count FROM hookonce.activity WHERE minutes = 0 ORDER BY 1, 2")
    return [row[1:] for row in found if row[0] == what]


def test_sender_says_what_an_event_is_about(inbox):
    def tell(event, _):
        return event.subject

    inbox.on(tell, stale="skip")
    body = {"created": 1767225600, "data": {"object": {"object": "customer", "id": "cus_1"}}}
    inbox.deliver("a", body=json.dumps(body).encode())

    inbox.work()

    assert results(inbox) == {"a": ["customer:cus_1", 1767225600_000_000]}


def test_handler_without_stale_writes_no_entity(inbox):
    inbox.on(effect)
    inbox.deliver("a", body=b'{"created": 1, "data": {"object": {"object": "customer", "id": "cus_1"}}}')

    inbox.work()

    assert inbox.rows("SELECT 1 FROM hookonce.entities") == []


def test_entity_is_shown_and_forgotten(inbox):
    inbox.on(save, **OWN)
    newest, _ = deliver(inbox, order("b", 2), order("a", 1))
    inbox.work()

    (found,) = entities.newest(inbox.connection, "stripe", "o1")
    gone = entities.forget(inbox.connection, "stripe", "o1")
    (event,) = deliver(inbox, order("c", 1))
    inbox.work([event])

    assert (found.handler, found.account, found.version, found.event) == ("save", "", 2, newest)
    assert gone == 1
    assert inbox.effects() == ["001 c", "002 b"]


def test_skips_are_counted_of_what_runs_say(inbox):
    def tell(event, _):
        return event.subject

    inbox.on(tell, **OWN)
    deliver(inbox, order("c", 3), order("b", 2), order("a", 1), order("d", None))
    inbox.work()

    shown = {metric.name: metric for metric in ledger_metrics.collect(inbox.connection, {})}
    run_durations.add(
        inbox.connection, *inbox.rows("SELECT now() - interval '1 h', now() + interval '1 h'")[0]
    )
    kept = counters.totals(inbox.connection)

    assert [sample.value for sample in shown["hookonce_stale"].samples] == [2]
    assert [sample.value for sample in shown["hookonce_unguarded"].samples] == [1]
    assert kept[Tally(Kind.STALE, "tell")] == 2


def test_rows_without_news_go_when_old_events_do(inbox):
    inbox.on(save, **OWN)
    deliver(inbox, order("a", 1), order("b", 1, of="o2"), order("c", 1, of="o3"))
    inbox.work()
    inbox.connection.execute(
        "UPDATE hookonce.entities SET raised_at = now() - interval '31 days' WHERE entity IN ('o1', 'o2')"
    )
    month = timedelta(days=30)

    horizons = Retention(month, month, month, month)
    assert [*RetentionPass(horizons).steps(inbox.connection)]
    kept = inbox.rows("SELECT entity FROM hookonce.entities")

    assert kept == [("o3",)]


def test_rows_of_a_source_that_keeps_events_for_ever_stay(inbox):
    inbox.on(save, **OWN)
    deliver(inbox, order("a", 1))
    inbox.work()
    inbox.connection.execute("UPDATE hookonce.entities SET raised_at = now() - interval '9 years'")
    month = timedelta(days=30)

    horizons = Retention(month, month, month, month, {"stripe": FOREVER})
    assert [*RetentionPass(horizons).steps(inbox.connection)]

    assert inbox.rows("SELECT entity FROM hookonce.entities") == [("o1",)]


def test_row_goes_with_the_person_it_is_about(inbox):
    inbox.on(save, **OWN)
    erased, _ = deliver(inbox, order("a", 1), order("b", 1, of="o2"))
    inbox.work()

    erasure.erase(inbox.connection, [erased], "test")

    assert inbox.rows("SELECT entity FROM hookonce.entities") == [("o2",)]


def test_person_is_erased_while_a_handler_is_at_something_newer_of_it(inbox):
    inbox.on(save, **OWN)
    (erased,) = deliver(inbox, order("a", 1))
    inbox.work()
    with connections.connect(inbox.settings.database_url) as other:
        other.execute("BEGIN")
        other.execute("SELECT FROM hookonce.entities FOR UPDATE")
        inbox.connection.execute("SET lock_timeout = '1s'")

        assert erasure.erase(inbox.connection, [erased], "test").erased == [erased]


def test_replay_says_which_handlers_will_skip_an_older_event(inbox):
    def other(event, tx):
        if event.event_id == "b":
            raise LookupError("no")
        save(event, tx)

    inbox.on(save, **OWN)
    inbox.on(other, **OWN, attempts=1)
    newer, older = deliver(inbox, order("b", 2), order("a", 1))
    inbox.work()
    register_handlers(inbox.connection, inbox.registry.rows(), inbox.registry.declarations())
    desk = Desk(inbox.settings, inbox.connection, "test")

    previews = [
        replay(desk, asked=ReplayRequest(events=[str(event)], again=True, dry_run=True))
        .outcomes[0]
        .skipped_by
        for event in (older, newer)
    ]
    (real,) = replay(desk, asked=ReplayRequest(events=[str(older)], again=True)).outcomes
    inbox.work()

    assert previews == [["save"], []]
    assert real.skipped_by == ["save"]
    assert results_of(inbox, older) == {"save": {"skipped": "stale", "newest": newer}, "other": None}


def results_of(inbox, event):
    rows = inbox.rows("SELECT event, handler, result FROM hookonce.runs WHERE is_last")
    return {handler: result for number, handler, result in rows if number == event}


@pytest.mark.parametrize(("options", "more"), [({}, 0), ({"stale": None}, 0), (OWN, 1)])
def test_guard_costs_one_statement_and_nothing_without_stale(inbox, monkeypatch, options, more):
    def count(cursor, *args, **kwargs):
        counted.append(args[0])
        return execute(cursor, *args, **kwargs)

    def nothing(_event, _tx):
        pass

    def guarded(_event, _tx):
        pass

    counted, execute = [], psycopg.Cursor.execute
    inbox.on(nothing, pattern="plain")
    inbox.on(guarded, pattern="other", **options)
    warm = [*deliver(inbox, order("w1", 1, type="plain")), *deliver(inbox, order("w2", 1, type="other"))]
    inbox.work(warm)
    monkeypatch.setattr(psycopg.Cursor, "execute", count)

    inbox.work(deliver(inbox, order("a", 2, type="plain")))
    plain = len(counted)
    counted.clear()
    inbox.work(deliver(inbox, order("b", 2, type="other")))

    assert len(counted) == plain + more
