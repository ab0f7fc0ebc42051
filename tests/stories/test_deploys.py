"""A new version takes over while senders send and handlers run: nothing is lost, nothing is done twice."""

import signal
import subprocess
import sys

import pytest

from hookonce.receiver.ledger.database.schema_version import FIRST
from tests.support.stories import reading
from tests.support.stories.sending import depot
from tests.support.stories.stack import Stack, running, until

ENDED = 20
"""Seconds in which a process has ended that was asked to."""
KNOWING = """
from datetime import timedelta
import tests.support.stories.hurried
from hookonce.jobs import claimer
from hookonce.jobs.handlers import registry
claimer.WAKE_INTERVAL = timedelta(seconds=0.5)
registry.keep(handler for handler in registry if handler.name in {names})
"""
VERSIONS = {"stripe_only": ("credit", "mail"), "depot_only": ("track",)}
HELD = "SELECT count(*) FROM hookonce.run_states WHERE token IS NOT NULL"
RUN = "SELECT r.status, attempts FROM hookonce.run_states r JOIN hookonce.events ON id = event WHERE event_id = %s"
LATEST = "SELECT coalesce(max(id), 0) FROM hookonce.event_states"
UNDONE = "SELECT count(*) FROM hookonce.event_states WHERE status <> 'done' AND id > %s"
NEWER = f"{FIRST}.99"
PASS_TIME = "UPDATE hookonce.queue SET due_at = now() WHERE due_at > now()"


@pytest.fixture(scope="module")
def receiving(fresh_database, fresh_redis, tmp_path_factory):
    with fresh_database() as url, fresh_redis() as redis_url:
        directory = tmp_path_factory.mktemp("stack")
        for name, handlers in VERSIONS.items():
            (directory / f"{name}.py").write_text(KNOWING.format(names=handlers))
        with running(Stack(directory, url, redis_url, workers=0).make_effects()) as stack:
            yield stack
            start(stack, "last")
            assert stack.violations() == []


@pytest.fixture
def stack(receiving):
    """A receiver; the test's own workers end with it, and others do what they leave."""
    yield receiving
    for name in [name for name in receiving.processes if name != "serve"]:
        stop(receiving.processes.pop(name))


def start(stack, name="worker", handlers=None, *options):
    """Start `hookonce worker`, knowing all handlers or those of a version."""
    return stack.run(name, "worker", *options, **({"HOOKONCE_HANDLERS": handlers} if handlers else {}))


def stop(process):
    process.send_signal(signal.SIGTERM)
    return process.wait(ENDED)


def entered(stack, message):
    """Wait until the handler of an event is at work on it."""
    event_id = message.events()[0].event_id
    until(lambda: ("running", 1) in stack.query(RUN, [event_id]), what="the attempt")
    until(
        lambda: event_id in {each.event_id for each in reading.entries(stack.directory)}, what="the handler"
    )


def test_receiver_that_is_told_to_stop_under_load_answers_what_it_took(stack):
    with stack.load(senders=4):
        until(lambda: len(stack.answers) > 30, what="some load")
        status = stop(stack.processes["serve"])
        taken = {row[0] for row in stack.query("SELECT event_id FROM hookonce.event_states")}
        stack.start()

    told = {
        event_id
        for each in stack.history.deliveries
        for event_id, verdict in each.verdicts.items()
        if verdict == "accepted"  # to a retry the next receiver says "duplicate"
    }
    assert status == 0
    assert taken <= told | stack.given_up


def test_worker_that_is_told_to_stop_ends_its_attempt_and_lets_go_of_the_rest(stack):
    slow, others = stack.event(slow=0.5), [stack.event() for _ in range(5)]
    for message in (slow, *others):
        stack.insist(message)
    worker = start(stack)
    entered(stack, slow)

    status = stop(worker)

    assert status == 0
    assert stack.query(RUN, [slow.events()[0].event_id]) == [("done", 1)]
    assert stack.query(HELD) == [(0,)]


def test_run_of_a_handler_that_a_worker_does_not_know_waits(stack):
    message = depot("parcel_of_the_new_version", slow=0.5)
    stack.insist(message)
    new = start(stack, "worker", None, "--alone")
    entered(stack, message)
    new.kill()
    new.wait()
    stack.history.faults += 1

    old = start(stack, "old", "stripe_only", "--alone")
    until(lambda: stack.query(RUN, ["parcel_of_the_new_version"]), [("waiting", 0)], what="the takeover")
    stop(old)

    stack.query(PASS_TIME)


def test_workers_with_different_handlers_side_by_side_leave_nothing_undone(stack):
    [before] = stack.query(LATEST)
    start(stack, "one", "stripe_only")  # with the sweep, for what one of them put off
    start(stack, "other", "depot_only", "--alone")
    with stack.load():
        for n in range(40):
            stack.insist(depot(f"parcel_{n}"))

    until(lambda: stack.query(UNDONE, before), [(0,)], what="the work of both")


def test_old_version_goes_on_beside_a_newer_schema(stack):
    stack.query("ALTER TABLE hookonce.events ADD COLUMN from_the_future text")
    stack.query("UPDATE hookonce.hookonce_version SET version_num = %s", [NEWER])

    start(stack)
    stack.insist(stack.event())
    stack.rest()
    upgraded = run(stack, "db", "upgrade")

    assert (upgraded.returncode, upgraded.stderr.strip()) == (0, f"the schema is at {NEWER}")


def run(stack, *arguments):
    command = [sys.executable, "-m", "hookonce.receiver.cli", *arguments]
    return subprocess.run(
        command,
        cwd=stack.directory,
        env=stack.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_worker_brings_back_each_of_its_processes_that_is_killed(stack):
    start(stack)
    until(lambda: len(stack.kin("worker")) == 2, what="the RQ worker and the sweep")
    before = stack.kin("worker")
    for pid in before:
        stack.kill(pid)

    until(lambda: len(set(stack.kin("worker")) - set(before)) == 2, what="their return")
    stack.insist(stack.event())
    stack.rest()
