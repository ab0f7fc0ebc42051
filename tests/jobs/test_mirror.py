"""RQ's own tools show what is true of workers, and have nothing to clean up."""

import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import redis
from rq import Queue
from rq.job import Job
from rq.registry import clean_registries
from rq.serializers import JSONSerializer

from hookonce.jobs import drain, mirror
from hookonce.jobs.handlers import GiveUp, RetryLater
from hookonce.jobs.mirror import Mirror
from hookonce.jobs.slots.pool import Pool
from hookonce.jobs.worker import Worker
from hookonce.receiver.ledger.replay.discards import discard
from hookonce.receiver.ledger.replay.events import replay
from tests.support.waiting import until

DEAD = "SELECT count(*) FROM hookonce.runs WHERE status = 'dead' AND is_last"


@pytest.fixture
def client(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
def rq(redis_url):
    """Run a command of RQ's, and return the words that it prints."""

    def run(command, *arguments):
        program = Path(sys.executable).with_name("rq")
        return subprocess.run(
            [program, command, "--url", redis_url, *arguments], capture_output=True, text=True, check=True
        ).stdout

    return run


@pytest.fixture
def signals():
    """Give this process back its own ways to hear signals."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def pool(inbox):
    """Make a process of many slots, whose handlers may be let go."""
    made = []

    def make(slots):
        made.append(Pool(inbox.settings, inbox.registry, slots=slots))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def queue(client):
    return Queue("hookonce", connection=client, serializer=JSONSerializer)


@pytest.fixture
def shown(client):
    """Mirror a claimer as the worker does that it belongs to."""
    ended = []

    def begin(claimer):
        worker = Worker(["hookonce"], connection=client, claimer=claimer)
        worker.register_birth()
        ended.append(Mirror(worker, claimer).__enter__())
        return worker

    yield begin
    for each in ended:
        each.__exit__(None, None, None)


def seen(text, part):
    return text if part in text else None


def gives_up(_event, _tx):
    raise GiveUp("customer 4242 is unknown")


def test_rq_info_shows_busy_slots_dead_runs_and_what_is_done(inbox, pool, shown, rq):
    let_go = threading.Event()

    def handles(event, _tx):
        if event.type == "bad":
            raise GiveUp("customer 4242 is unknown")
        if event.type == "long":
            let_go.wait(60)

    inbox.on(handles, timeout=timedelta(seconds=90))
    inbox.deliver(*(f"good{n}" for n in range(1000)), type="good")
    inbox.deliver(*(f"bad{n}" for n in range(10)), type="bad")
    claimer = pool(64)
    worker = shown(claimer)
    try:
        claimer.run_due()
        until(lambda: sum(claimer.tally.counts.values()) == 1010)
        inbox.deliver(*(f"long{n}" for n in range(64)), type="long")
        claimer.run_due()
        said = until(lambda: seen(rq("info"), "64 executing, 0 finished, 10 failed"))
    finally:
        let_go.set()

    [line] = [line for line in said.splitlines() if line.startswith(worker.name)]
    assert "busy" in line
    assert "jobs: 1000 finished, 10 failed" in line


def test_attempts_of_a_killed_worker_are_no_failures_to_rq_whenever_it_cleans_up(
    inbox, pool, client, queue, rq
):
    let_go = threading.Event()

    def waits(_event, _tx):
        let_go.wait(60)

    inbox.on(waits, pattern="long", timeout=timedelta(seconds=90))
    inbox.on(gives_up, pattern="bad")
    inbox.deliver("a", type="bad")
    [event] = inbox.deliver("b", type="long")
    claimer = pool(4)
    left = mirrored(client, claimer)
    claimer.run_due()
    try:
        until(lambda: left.look() or "1 executing, 0 finished, 1 failed" in rq("info"))
        before = {key: client.zrange(key, 0, -1) for key in (b"rq:wip:hookonce", b"rq:failed:hookonce")}
        for registry in (queue.started_job_registry, queue.failed_job_registry):
            registry.cleanup(timestamp=time.time() + 600)
        clean_registries(queue)
    finally:
        let_go.set()

    assert before == {key: client.zrange(key, 0, -1) for key in before}
    assert queue.started_job_registry.get_job_ids() == [f"event-{event}-waits"]
    assert len(queue.failed_job_registry.get_job_ids()) == inbox.rows(DEAD)[0][0] == 1


def mirrored(client, claimer):
    """Return the mirror of a worker that is killed at the next moment: nothing ends it."""
    worker = Worker(["hookonce"], connection=client, claimer=claimer)
    worker.register_birth()
    return Mirror(worker, claimer)


def test_attempt_that_its_worker_does_not_renew_is_shown_no_more(inbox, pool, client, monkeypatch):
    monkeypatch.setattr(mirror, "GONE_AFTER", timedelta(seconds=1))
    monkeypatch.setattr(mirror, "MIRRORED_AFTER", timedelta(0))
    let_go = threading.Event()

    def waits(_event, _tx):
        let_go.wait(60)

    inbox.on(waits, timeout=timedelta(seconds=90))
    inbox.deliver("a")
    claimer, idle = pool(2), pool(1)
    killed, other = mirrored(client, claimer), mirrored(client, idle)
    claimer.run_due()
    try:
        until(lambda: claimer.all_slots[0].under_way or claimer.all_slots[1].under_way)
        killed.look()
        assert client.zcard("rq:wip:hookonce") == 1
        client.persist("rq:wip:hookonce")
        until(lambda: other.look() or client.zcard("rq:wip:hookonce"), 0)
    finally:
        let_go.set()


def test_every_key_that_is_mirrored_expires(inbox, client):
    inbox.on(gives_up)
    inbox.deliver("a")
    inbox.work()
    before = set(client.keys())
    shown = mirrored(client, inbox.drains[0])

    shown.look()
    shown.look()

    written = set(client.keys()) - before - {b"rq:workers", b"rq:workers:hookonce", b"rq:queues"}  # RQ's own
    assert len(written) == 5
    assert {key for key in written if client.ttl(key) < 0} == set()


def test_dead_run_is_shown_with_its_error_and_no_word_of_what_it_says(inbox, client):
    inbox.on(gives_up)
    [event] = inbox.deliver("a")
    inbox.work()
    shown = mirrored(client, inbox.drains[0])

    shown.look()
    shown.look()

    job = Job.fetch(f"event-{event}-gives_up", connection=client, serializer=JSONSerializer)
    error = job.latest_result().exc_string
    assert error.startswith("GiveUp (")
    assert "test_mirror.py" in error
    assert "4242" not in str(client.hgetall(job.key)) + error
    assert (job.get_status(), job.args) == ("failed", [event, "gives_up", 1])


def test_dead_run_that_is_replayed_or_discarded_is_shown_no_more(inbox, client, queue):
    inbox.on(gives_up)
    events = inbox.deliver("a", "b", "c")
    inbox.work()
    shown = mirrored(client, inbox.drains[0])
    until(lambda: shown.look() or queue.failed_job_registry.count, 3)

    list(replay(inbox.connection, events[:1], "me"))
    discard(inbox.connection, events[1:2], "me")
    until(lambda: shown.look() or queue.failed_job_registry.get_job_ids(), ids_of(events[2]), falling=True)

    assert [client.exists(f"rq:job:{each}") for each in ids_of(*events)] == [0, 0, 1]


def ids_of(*events):
    return [f"event-{event}-gives_up" for event in events]


def requeue(rq, inbox, shown, event, *, allowed=True):
    """Have RQ requeue a dead run, and a worker take that."""
    until(lambda: shown.look() or shown.queue.failed_job_registry.get_job_ids())
    rq("requeue", "--queue", "hookonce", f"event-{event}-gives_up")
    inbox.drains[0].settings = replace(inbox.settings, rq_requeue=allowed)
    Worker(["hookonce"], connection=shown.worker.connection, claimer=inbox.drains[0]).work(burst=True)


AUDITED = "SELECT who, action, subject FROM hookonce.audit ORDER BY id"
CYCLES = "SELECT cycle, status, is_last FROM hookonce.runs ORDER BY cycle"


@pytest.mark.usefixtures("signals")
@pytest.mark.parametrize("allowed", [True, False])
def test_requeue_of_a_dead_run_is_a_replay_where_that_is_allowed(inbox, client, rq, allowed):
    inbox.on(gives_up)
    [event] = inbox.deliver("a")
    inbox.work()

    requeue(rq, inbox, mirrored(client, inbox.drains[0]), event, allowed=allowed)

    cycles = [(1, "dead", False), (2, "dead", True)] if allowed else [(1, "dead", True)]
    assert inbox.rows(CYCLES) == cycles
    assert inbox.rows(AUDITED) == ([("rq", "replay", f"event {event}")] if allowed else [])


@pytest.mark.parametrize(
    ("handler", "cycle"), [("gives_up", 2), ("gives_up", 1), ("is_quick", 1), ("nobody", 1), ("", 1)]
)
def test_requeue_replays_nothing_but_the_cycle_that_is_dead(inbox, handler, cycle):
    def is_quick(_event, _tx):
        """Write nothing."""

    inbox.on(gives_up)
    inbox.on(is_quick)
    [event] = inbox.deliver("a")
    inbox.work()
    inbox.drains[0].settings = replace(inbox.settings, rq_requeue=True)
    if (handler, cycle) == ("gives_up", 1):
        assert drain.on_requeued(inbox.drains[0], event, "gives_up", 1) == 1
    before = inbox.rows(CYCLES)

    assert drain.on_requeued(inbox.drains[0], event, handler, cycle) == 0
    assert inbox.rows(CYCLES) == before


def test_requeue_leaves_the_other_runs_of_the_event_as_they_are(inbox):
    def is_put_off(_event, _tx):
        raise RetryLater(timedelta(hours=1))

    inbox.on(gives_up)
    inbox.on(is_put_off)
    [event] = inbox.deliver("a")
    inbox.work()
    inbox.drains[0].settings = replace(inbox.settings, rq_requeue=True)
    before = inbox.rows("SELECT handler, cycle, due_at FROM hookonce.queue")

    assert drain.on_requeued(inbox.drains[0], event, "gives_up", 1) == 1

    assert inbox.rows("SELECT handler, cycle, due_at FROM hookonce.queue") == before
