"""What `/metrics` says of each handler: attempts, retries, and runs that came back from workers that were lost."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from hookonce.jobs.attempts.attempt import Executor
from hookonce.receiver.app import create_app
from hookonce.receiver.ledger.runs import takeover
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from hookonce.receiver.ledger.runs.takeover import WorkerEnd
from tests.support.claiming import claim, claim_suspect, lapse
from tests.support.inbox import effect, inbox

__all__ = ["inbox"]


def samples(inbox, name):
    """The samples of a metric: by their labels, in the order of the labels' names."""
    app = create_app(inbox.settings)
    try:
        page = app.test_client().get("/metrics").text
    finally:
        app.extensions["hookonce"].close()
    found = next(each for each in text_string_to_metric_families(page) if each.name == name).samples
    return {tuple(value for _, value in sorted(each.labels.items())): each.value for each in found}


def lose(inbox):
    lapse(inbox.connection)
    takeover.take_over(inbox.connection, WorkerEnd(handlers=inbox.registry))


def test_attempts_and_retries_are_counted_by_handler(inbox):
    tries = []

    def third_time(event, _tx):
        tries.append(event)
        if len(tries) < 3:
            raise ValueError

    inbox.on(third_time, pattern="third")
    inbox.on(effect, pattern="plain")
    inbox.deliver("a", type="third")
    inbox.deliver("b", "c", type="plain")
    inbox.work()

    assert samples(inbox, "hookonce_attempts") == {("third_time",): 3, ("effect",): 2}
    assert samples(inbox, "hookonce_retries") == {("third_time",): 2, ("effect",): 0}


def test_run_of_a_lost_worker_is_counted_by_its_handler_and_its_source(inbox):
    inbox.on(effect, attempts=1)
    inbox.deliver("a", "b", "c")
    claim(inbox.connection, inbox.registry, slots=2)

    lose(inbox)  # two of them may have been started
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now()")
    claim_suspect(inbox.connection, inbox.registry)
    lose(inbox)

    assert samples(inbox, "hookonce_recoveries") == {("effect", "again"): 2, ("effect", "dead"): 1}
    assert samples(inbox, "hookonce_leases_recovered") == {("stripe", "again"): 2, ("stripe", "dead"): 1}


@pytest.mark.parametrize("count", [1, 4])
def test_lost_batch_is_one_recovery_of_its_handler(inbox, count, monkeypatch):
    def collects(_events, _tx):
        pass

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Executor, "_make", die)
    inbox.on(collects, batch=BatchSize(10))
    inbox.deliver(*"abcd"[:count])
    with pytest.raises(KeyboardInterrupt):
        inbox.work()

    lose(inbox)

    assert samples(inbox, "hookonce_recoveries") == {("collects", "again"): 1}
