"""A ledger in the midst of an incident: something of everything that an operator asks about."""

import json
from datetime import UTC, datetime, timedelta

from hookonce.jobs.handlers import Handler, Registry
from hookonce.receiver.ledger import alerts, pauses, rejected
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.handlers import register_handlers
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.replay import bulk
from hookonce.receiver.ledger.runs.run_limits import RunLimit
from hookonce.receiver.ledger.store import store
from tests.support import desk, issues
from tests.support.new_event import new_event
from tests.support.outcomes import fail, put_into_state

CREDIT, REFUND, CALL, MAIL = "shop.credit", "books.refund", "shop.call", "shop.mail"


def begin(connection):
    """Fill an empty ledger; return what a question may name: events, an issue, a rejection."""
    _register(connection)
    body = b'{"id": "evt", "customer": "cus_77"}'
    (dead, *_) = issues.die_of(
        connection,
        *(f"evt_dead_{n}" for n in (1, 2, 3)),
        release="release-42",
        body=body,
        type="invoice.payment_failed",
    )
    for name in ("evt_late_1", "evt_late_2"):
        _die_of_time(connection, _came(connection, name, type="charge.refunded"))
    put_into_state(connection, _came(connection, "evt_done_1"), runs=[(CREDIT, "done", 1)])
    _came(connection, "evt_done_1", body=b'{"id": "another body"}')
    running = _came(connection, "evt_runs")
    put_into_state(connection, running, runs=[(CREDIT, "running", 1)])
    put_into_state(connection, _came(connection, "evt_held"), "held")
    replayed = _came(connection, "evt_again")
    put_into_state(connection, replayed, runs=[(CREDIT, "done", 1)])
    audit_log.note(connection, "ann", "replay", f"event {replayed}", {"cycle": 2})
    desk.wait_for_place(connection, CALL, 3)
    desk.fail_in_a_row(connection, MAIL, 5, limit=5, error="OSError: no route")
    pauses.pause(connection, "handler", REFUND, "ann")
    alerts.raise_alert(connection, "source_silent", "github", "at least 40 deliveries are missing")
    stopped = bulk.start(connection, Filter(status="dead"), "ann")
    bulk.stop(connection, stopped.id, "ann")
    return {"issue": issues.ID, "dead": dead, "replayed": replayed, "rejection": _refuse(connection)}


def report(connection):
    """Have a worker report that is alive, and no other."""
    connection.execute("TRUNCATE hookonce.worker_slots")
    desk.report(connection, name="worker-of-the-tests:7")


def _register(connection):
    registry = Registry()
    options = {"attempts": 3, "backoff": (timedelta(0), timedelta(0)), "timeout": timedelta(seconds=40)}
    for name, limit in {CREDIT: None, REFUND: None, CALL: RunLimit(concurrency=1), MAIL: None}.items():
        more = {} if limit is None else {"limit": limit}
        registry.add(Handler(name, "stripe", "*", print, **options, **more))
    register_handlers(connection, registry.rows(), registry.declarations())


def _came(connection, name, **changes):
    event = new_event(name, **changes)
    return store(connection, [event])[event.key].id


def _die_of_time(connection, event):
    put_into_state(connection, event, runs=[(REFUND, "dead", 10)])
    connection.execute(
        "UPDATE hookonce.runs SET started_at = finished_at - interval '31 s' WHERE event = %s", [event]
    )
    fail(connection, event, "TimeoutError: took 31 s", handler=REFUND, attempt=10)


def _refuse(connection):
    now = datetime.now(UTC)
    headers = json.dumps({"stripe-signature": f"t={now.timestamp():.0f},v1={'0' * 64}"})
    sample = rejected.Sample(now, "stripe", "bad_signature", "v1 does not match", headers, b"{}")
    rejected.add_secret_uses(connection, {("github", 1): 144})
    rejected.add_rejections(connection, [sample], {("stripe", "bad_signature"): 4})
    return connection.execute("SELECT max(id) FROM hookonce.rejected").fetchone()[0]
