"""Whatever settings a role carries, what we read and write is the same, direct and through a pooler."""

from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import text

from hookonce.jobs.attempts.django_transaction import DjangoTransactions
from hookonce.jobs.maintenance.sweep import Sweep
from hookonce.receiver.encryption import OFF
from hookonce.receiver.intake.deduplication import Deduplicator, DeliveryEvents
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.queries import event_details, events
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from hookonce.receiver.ledger.stats import backlog, totals
from hookonce.receiver.processes.waits import IN_THREAD, run
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.dedup_window import DedupWindow
from hookonce.receiver.redis.work_queue import WorkQueue
from tests.support.django_project import entry, lead
from tests.support.inbox import inbox
from tests.support.new_event import WINDOW, new_event
from tests.support.pooler import PGBOUNCER, pooling

__all__ = ["entry", "inbox"]

OF_THE_ROLE = {
    "timezone": "America/New_York",
    "client_encoding": "LATIN1",
    "datestyle": "German, DMY",
    "intervalstyle": "sql_standard",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "standard_conforming_strings": "off",
    "backslash_quote": "off",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "quote_all_identifiers": "on",
    "exit_on_error": "on",
    "client_min_messages": "error",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "search_path": "elsewhere",
    "row_security": "off",
    "check_function_bodies": "off",
    "escape_string_warning": "off",
    "enable_indexscan": "off",
    "lc_time": "C",
    "plan_cache_mode": "force_custom_plan",
    "idle_session_timeout": "1h",
    "work_mem": "64",
}
"""Settings that a role may carry, each with a value that nobody expects."""
ZERO = datetime(1, 1, 1, tzinfo=UTC)
BODY = b'{"name": "\xc5\x82\\\\d"}'
VALUES = (
    "SELECT CAST('2026-03-04 05:06:07+00' AS timestamptz), CAST('1 day -2 hours' AS interval), "
    r"CAST('\x00ff5c' AS bytea), CAST(0.1 AS float8) + CAST(0.2 AS float8), "
    r"'\d', CAST('{NULL}' AS text[]), current_setting('transaction_isolation')"
)
READ = (
    datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC),
    timedelta(days=1, hours=-2),
    b"\x00\xff\\",
    0.1 + 0.2,
    "\\d",
    [None],
    "read committed",
)
WAYS = [
    "direct",
    pytest.param("pooled", marks=pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")),
]


@pytest.fixture
def carrying(database_url):
    """Have the role of this test's database carry settings; nobody else's session does."""

    def carry(settings):
        with psycopg.connect(database_url, autocommit=True) as connection:
            name, role = connection.info.dbname, connection.info.user
            connection.execute("CREATE SCHEMA IF NOT EXISTS elsewhere")
            for setting, value in settings.items():
                connection.execute(
                    sql.SQL("ALTER ROLE {} IN DATABASE {} SET {} = {}").format(
                        sql.Identifier(role), sql.Identifier(name), sql.Identifier(setting), value
                    )
                )

    return carry


@pytest.fixture
def url_of(database_url, data_directory):
    """Return the URL that leads to the database in a way; the pooler, of one connection, sets nothing for it."""
    with ExitStack() as stack:
        yield (
            lambda way: (
                database_url
                if way == "direct"
                else stack.enter_context(pooling(database_url, data_directory, size=1, settings="SELECT 1"))
            )
        )


def received(url, redis_url, *ids):
    with connect(redis_url) as client:
        lane = Deduplicator(url, DedupWindow(client, CircuitBreaker()), WorkQueue(client))
        try:
            wanted = [new_event(event_id, body=BODY, type="ł.é", occurred_at=ZERO) for event_id in ids]
            answers = [run(lane.commit([DeliveryEvents([each], WINDOW)], IN_THREAD)) for each in wanted]
        finally:
            lane.close()
    return [str(answer[0][0].verdict) for answer in answers]


def lived(inbox, url, redis_url):
    """Have events come in, be handled and be looked at, all by `url`; return what was found."""
    found = {}

    def reads(event, tx):
        found["body"], found["occurred"] = event.raw, event.occurred_at
        found["values"] = tuple(tx.exec_driver_sql(VALUES).one())
        effect_of = text("INSERT INTO public.effects (event) VALUES (:event)")
        tx.execute(effect_of, {"event": event.event_id})
        return {"ł": 1.5}

    def fails(event, tx):  # noqa: ARG001
        raise LookupError("ł \\d")

    def batched(events, tx):  # noqa: ARG001
        found["batch"] = [event.occurred_at for event in events]

    inbox.on(reads)
    inbox.on(fails, attempts=2)
    inbox.on(batched, batch=BatchSize(2))
    inbox.settings = replace(inbox.settings, database_url=url)
    found["verdicts"] = received(url, redis_url, "a", "b", "a")
    for _ in range(5):
        inbox.work()
    sweep = Sweep(inbox.settings)
    sweep.once()
    sweep.close()
    with connections.connect(url) as connection:
        rows = list(events.events(connection, Filter()))
        found["rows"] = [(row.event_id, row.type, row.status, row.occurred_at) for row in rows]
        details = event_details.detail(connection, rows[0].id, OFF).with_content()
        found["runs"] = sorted(
            (each.handler, each.status, each.error and each.error.partition(" (")[0], each.result)
            for each in details.runs
        )
        found["sums"] = (
            sorted([(each.source, each.status, each.count) for each in totals.event_sums(connection)]),
            backlog.oldest_due(connection),
        )
        found["ours"] = connection.execute(VALUES).fetchone()
    found["effects"] = inbox.rows("SELECT event FROM public.effects ORDER BY 1")
    return found


EXPECTED = {
    "body": BODY,
    "occurred": ZERO,
    "values": READ,
    "batch": [ZERO, ZERO],
    "verdicts": ["accepted", "accepted", "duplicate"],
    "rows": [("b", "ł.é", "dead", ZERO), ("a", "ł.é", "dead", ZERO)],
    "runs": [
        ("batched", "done", None, None),
        ("fails", "dead", r"LookupError: ł \d", None),
        ("reads", "done", None, {"ł": 1.5}),
    ],
    "sums": ([("stripe", "dead", 2)], 0.0),
    "ours": READ,
    "effects": [("a",), ("b",)],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("setting", [*OF_THE_ROLE, "all"])
def test_setting_of_the_role_changes_nothing(inbox, redis_url, carrying, url_of, setting, way):
    carrying(OF_THE_ROLE if setting == "all" else {setting: OF_THE_ROLE[setting]})

    assert lived(inbox, url_of(way), redis_url) == EXPECTED


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("setting", ["standard_conforming_strings", "default_transaction_isolation", "all"])
def test_setting_of_the_role_changes_nothing_in_django(inbox, carrying, url_of, entry, setting, way):
    found = []

    def reads(event, connection):  # noqa: ARG001
        with connection.cursor() as cursor:
            cursor.execute(VALUES)
            found.append(cursor.fetchone())
            cursor.execute("INSERT INTO public.effects (event) VALUES ('a')")
        return {"ł": 1.5}

    carrying(OF_THE_ROLE if setting == "all" else {setting: OF_THE_ROLE[setting]})
    if (url := url_of(way)) != inbox.settings.database_url:
        pool = url.partition("?host=")[2].partition("&")[0]
        lead("default", entry | {"HOST": pool, "PORT": "6432", "DISABLE_SERVER_SIDE_CURSORS": True})
    inbox.settings = replace(inbox.settings, database_url=url)
    inbox.transactions = DjangoTransactions
    inbox.on(reads)
    inbox.deliver("a")

    inbox.work()

    assert found == [READ]
    assert inbox.runs() == [("a", "reads", "done", 1)]
