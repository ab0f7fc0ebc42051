"""A day on real servers on which everything happens once that is to be seen in metrics, logs, traces and alerts."""

import json
import logging
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import count as count_from

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hookonce.jobs.alerts.watcher import AlertWatcher
from hookonce.jobs.attempts import traces
from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver.config.alerts import Alerts, Rate
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.idempotency import counted
from hookonce.receiver.idempotency import traced as traced_operations
from hookonce.receiver.idempotency.counted import Counted, Operations
from hookonce.receiver.idempotency.postgresql import PostgresStore
from hookonce.receiver.idempotency.records import (
    InProgress,
    Key,
    KeyReused,
    LeaseLost,
    Result,
    Terms,
    scope_of,
)
from hookonce.receiver.intake import traced as traced_intake
from hookonce.receiver.ledger import alerts
from hookonce.receiver.ledger.access import api_tokens
from hookonce.receiver.ledger.access.api_tokens import Scope
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from hookonce.receiver.ledger.stats import activity
from hookonce.receiver.redis.client import connect
from hookonce.receiver.redis.work_queue import WorkQueue
from tests.support.in_process import Receiver

SECRET = "whsec_of_the_tests"
NOWHERE = "redis://127.0.0.1:1/0"
A_WHILE = timedelta(minutes=1)
LOUD = Alerts(
    dead_runs=None,
    oldest_due=timedelta(seconds=1),
    retried_for=timedelta(hours=1),
    duplicates=Rate(1, A_WHILE * 10),
    conflicts=Rate(1, A_WHILE * 10),
    lost_leases=Rate(1, A_WHILE * 10),
    redis=timedelta(0),
)
"""Thresholds that one of each is enough for."""


@dataclass
class Day:
    """What is left of it."""

    page: str
    lines: list
    spans: list
    alerts: set


class Lines(logging.Handler):
    def __init__(self):
        super().__init__(logging.INFO)
        self.records = []

    def emit(self, record):
        self.records.append({**vars(record), "message": record.getMessage()})


def live(database_url, redis_url, monkeypatch):
    """Live through the day."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for module in (traced_intake, traces, traced_operations):
        monkeypatch.setattr(module, "tracer", lambda: provider.get_tracer("tests"))
    settings = Settings(database_url, redis_url, {}, desk="door", tracing=True, alerts=LOUD)
    with _lines() as lines, connections.connect(database_url) as ledger:
        receive(settings, ledger)
        work(settings, ledger)
        operate(settings, ledger, monkeypatch)
        lose_redis(settings)
        age(ledger)
        raised = watch(settings, ledger)
        with closing(Receiver(database_url, redis_url)) as receiver:
            page = receiver.app.test_client().get("/metrics").text
    provider.shutdown()
    return Day(page, lines.records, exporter.get_finished_spans(), raised)


@contextmanager
def _lines():
    lines, root = Lines(), logging.getLogger("hookonce")
    before = root.level
    root.addHandler(lines)
    root.setLevel(logging.INFO)
    try:
        yield lines
    finally:
        root.removeHandler(lines)
        root.setLevel(before)


def deliver(receiver, number, kind="invoice.paid", **more):
    body = json.dumps({"id": f"evt_{number}", "type": kind, "account": "acct_1", **more}).encode()
    answer = receiver.send(
        "stripe", Delivery("POST", "/", load("stripe").sign(body, SECRET, receiver.now), body)
    )
    assert answer.status_code == 200, answer.text


def receive(settings, ledger):
    """Seven events; then the API, twice under one key."""
    receiver = Receiver(settings.database_url, settings.redis_url, tracing=True)
    receiver.add("stripe", load("stripe"), SECRET)
    with closing(receiver):
        for number, kind in enumerate(["invoice.paid"] * 2 + ["slow", "broken", "never"], 1):
            deliver(receiver, number, kind)
        for number in (8, 9):
            deliver(receiver, number, "track")
        token = api_tokens.create(ledger, "tests", list(Scope), None, "tests")
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "one"}
        client = receiver.app.test_client(use_cookies=False)
        for _ in range(2):
            client.post("/api/v1/replays", headers=headers, json={"events": [1]})


def work(settings, ledger):
    """Two events are done together; one is done and comes again, one loses its lease and fails once, one fails."""
    registry = Registry()

    def credit(_event, _tx):
        return None

    calls_of_slow = count_from(1)

    def slow(_event, _tx):
        call = next(calls_of_slow)
        if call == 2:
            raise ValueError("the shop is slow today")
        if call == 1:
            ledger.execute(
                "WITH lost AS (UPDATE hookonce.queue SET token = gen_random_uuid() WHERE handler = 'slow' "
                "RETURNING event, n, token) INSERT INTO hookonce.claims (token, lease_until, events, places) "
                "SELECT token, now() - interval '1 second', ARRAY[event], ARRAY[n] FROM lost"
            )

    def count(_events, _tx):
        return None

    def broken(_event, _tx):
        raise ValueError("the shop is closed")

    for handler in (credit, slow, broken):
        pattern = "invoice.*" if handler is credit else handler.__name__
        pause = (timedelta(),) * 2 if handler is slow else (timedelta(hours=1),) * 2
        registry.add(Handler(handler.__name__, "stripe", pattern, handler, 5, pause, timedelta(seconds=5)))
    of_many = Handler("count", "stripe", "track", count, 5, pause, timedelta(seconds=5), batch=BatchSize(10))
    registry.add(of_many)
    drain = SingleSlot(settings, registry)
    for _ in range(3):
        drain.run_due()
    drain.close()
    receiver = Receiver(settings.database_url, settings.redis_url, tracing=True)
    receiver.add("stripe", load("stripe"), SECRET)
    with closing(receiver):
        for _ in range(10):  # more than what is new
            deliver(receiver, 1)
        deliver(receiver, 2, amount=5)


def operate(settings, ledger, monkeypatch):
    """Claim, repeat, contradict, meet, take over, complete and lose a key of an operation called `pay`."""
    operations = Operations(lambda: settings.database_url)
    monkeypatch.setattr(counted, "operations", operations)
    pay, store = Counted("pay", operations.count), PostgresStore.at(settings.database_url)
    terms, scope = Terms(lease=A_WHILE), scope_of("pay", "a tenant")
    with closing(operations), closing(store):
        first = pay.begin(store, Key(scope, "done"), b"one", terms)
        with suppress(InProgress):
            pay.begin(store, Key(scope, "done"), b"one", terms)
        with suppress(KeyReused):
            pay.begin(store, Key(scope, "done"), b"two", terms)
        pay.complete(store, first, Result(200))
        pay.begin(store, Key(scope, "done"), b"one", terms)
        lost = pay.begin(store, Key(scope, "lost"), b"one", terms)
        ledger.execute("UPDATE hookonce.idempotency SET lease_until = now() WHERE state = 'in_progress'")
        pay.begin(store, Key(scope, "lost"), b"one", terms)
        with suppress(LeaseLost):
            pay.complete(store, lost, Result(200))


def lose_redis(settings):
    """Deliver where Redis does not answer; each phase fails once, with a breaker that lets all be tried."""
    receiver = Receiver(settings.database_url, NOWHERE, tracing=True)
    receiver.add("stripe", load("stripe"), SECRET)
    with closing(receiver):
        deliver(receiver, 6)
    with closing(Receiver(settings.database_url, settings.redis_url, tracing=True)) as half:
        half.add("stripe", load("stripe"), SECRET)
        intake = half.app.extensions["hookonce"]
        with connect(NOWHERE) as away, connect(settings.redis_url) as there:
            there.delete("rq:queue:hookonce")
            intake.lane = _notifying(away, intake.lane)
            deliver(half, 7)


def _notifying(client, lane):
    """Return a lane whose notifications go to another Redis than its window."""

    def opened(url, window, _work_queue, on_error):
        return lane(url, window, WorkQueue(client), on_error)

    return opened


def age(ledger):
    """Let a few minutes pass, and have a sweep count what happened before."""
    ledger.execute(
        "UPDATE hookonce.runs SET started_at = started_at - interval '3 minutes', "
        "finished_at = finished_at - interval '3 minutes' WHERE finished_at IS NOT NULL"
    )
    ledger.execute("UPDATE hookonce.failures SET failed_at = failed_at - interval '2 hours'")
    ledger.execute("UPDATE hookonce.events SET received_at = received_at - interval '3 minutes'")
    ledger.execute(
        "UPDATE hookonce.queue SET due_at = now() - interval '1 minute' "
        "WHERE event = (SELECT id FROM hookonce.events WHERE event_id = 'evt_7')"
    )
    ledger.execute(
        "UPDATE hookonce.queue SET token = gen_random_uuid() "
        "WHERE event = (SELECT id FROM hookonce.events WHERE event_id = 'evt_6')"
    )
    while activity.fill(ledger):
        pass


def watch(settings, ledger):
    """Have everything looked at with Redis away, and then with one that refuses; return what was raised."""
    raised = set()
    with connect(NOWHERE) as away, connect(settings.redis_url) as full:
        turn(ledger)
        watcher = AlertWatcher(settings, away)
        watcher.evaluate(ledger)
        raised |= {alert.kind for alert in alerts.open_alerts(ledger)}
        limit = full.config_get("maxmemory")["maxmemory"]
        full.config_set("maxmemory", 1)
        try:
            turn(ledger)
            AlertWatcher(settings, full).evaluate(ledger)
        finally:
            full.config_set("maxmemory", limit)
        return raised | {alert.kind for alert in alerts.open_alerts(ledger)}


def turn(ledger):
    ledger.execute("UPDATE hookonce.watching SET evaluated_at = now() - interval '1 minute'")
