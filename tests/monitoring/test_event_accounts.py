"""Each event that was accepted is counted once, whatever became of it."""

from datetime import timedelta

from prometheus_client.parser import text_string_to_metric_families

from hookonce.receiver.app import create_app
from hookonce.receiver.ledger.maintenance import erasure
from hookonce.receiver.ledger.maintenance.retention import Retention, RetentionPass
from hookonce.receiver.ledger.replay import events as replays
from hookonce.receiver.ledger.stats import activity
from tests.support.inbox import effect, inbox
from tests.support.outcomes import put_into_state

__all__ = ["inbox"]


def scraped(inbox):
    """The figures of the source `stripe`: by the metric's name, and its status if it has one."""
    app = create_app(inbox.settings)
    try:
        page = app.test_client().get("/metrics").text
    finally:
        app.extensions["hookonce"].close()
    return {
        (sample.name, sample.labels.get("status")): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.labels.get("source") == "stripe"
    }


def replay(inbox, *ids):
    assert all(each.is_whole for each in replays.replay(inbox.connection, ids, "somebody", again=True))
    inbox.work()


def require_sums(inbox, accepted):
    found = scraped(inbox)
    present = {status: n for (name, status), n in found.items() if name == "hookonce_events"}
    pruned = found["hookonce_events_pruned_total", None]
    assert found["hookonce_events_accepted_total", None] == sum(present.values()) + pruned == accepted
    return found, present


def test_events_add_up_after_retries_replays_pruning_erasing_held_and_ignored(inbox):
    def at_the_third(event, _tx):
        if event.attempt < 3:
            raise ValueError

    def never(_event, _tx):
        raise ValueError

    def later(_event, _tx):
        raise ValueError

    inbox.on(effect, pattern="plain")
    inbox.on(at_the_third, pattern="retried")
    inbox.on(never, pattern="dying")
    inbox.on(later, pattern="waiting", backoff=(timedelta(hours=1),) * 2)
    done, pruned, erased = inbox.deliver("done", "pruned", "erased", type="plain")
    (retried,), (dead,) = inbox.deliver("retried", type="retried"), inbox.deliver("dead", type="dying")
    inbox.deliver("waiting", type="waiting")
    (ignored,) = inbox.deliver("ignored", type="unknown")
    inbox.work()
    (held,) = inbox.deliver("held", type="plain")
    put_into_state(inbox.connection, held, "held", ())
    require_sums(inbox, 8)

    replay(inbox, done, dead, ignored)
    replay(inbox, done, retried)
    inbox.connection.execute(
        "UPDATE hookonce.events SET received_at = now() - interval '1000 days' WHERE id = %s", [pruned]
    )
    list(RetentionPass(Retention.of(inbox.settings)).steps(inbox.connection))
    erasure.erase(inbox.connection, [erased], "somebody")

    found, present = require_sums(inbox, 8)
    assert present == {"done": 3, "dead": 1, "ignored": 1, "waiting": 1, "held": 1}
    replayed = {status: n for (name, status), n in found.items() if name == "hookonce_events_replayed_total"}
    assert replayed == {"done": 3, "dead": 1, "ignored": 1}


def test_counters_are_not_less_when_the_sweep_has_counted(inbox):
    inbox.on(effect)
    inbox.deliver("a", "b")
    inbox.work()
    inbox.connection.execute("UPDATE hookonce.events SET received_at = received_at - interval '3 minutes'")
    inbox.connection.execute(
        "UPDATE hookonce.runs SET started_at = started_at - interval '3 minutes', "
        "finished_at = finished_at - interval '3 minutes'"
    )

    before = scraped(inbox)
    while activity.fill(inbox.connection):
        pass

    name = "hookonce_events_done_total", None
    assert before[name] == scraped(inbox)[name] == 2
    assert before["hookonce_run_duration_seconds_count", None] == 2


def test_families_are_there_before_anything_came(inbox):
    app = create_app(inbox.settings)
    try:
        page = app.test_client().get("/metrics").text
    finally:
        app.extensions["hookonce"].close()

    names = ("events_accepted", "events_done", "events_replayed", "secret_used", "runs", "workers", "batches")
    assert [name for name in names if f"# TYPE hookonce_{name}" not in page] == []
