"""Workers, consumers and the broker are killed again and again; what arrived is read from the other side."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import psycopg
import pytest
from nats.js.api import AckPolicy, ConsumerConfig

from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.store import store
from tests.support.brokers import STREAM, Nats
from tests.support.consuming import stripe_event
from tests.support.new_event import new_event
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
KILL_EVERY, BROKER_EVERY = 1.5, 4.5
"""Seconds between two kills of a process, and of the broker."""
SIZES = [pytest.param(1000, id="small"), pytest.param(10_000, id="full", marks=pytest.mark.long)]
FORWARD = '[sources.stripe]\nsecrets = ["env:SECRET"]\n[forwards.out]\nfrom = "stripe"\nto = "{url}"\n'
CONSUMER = '[sources.orders]\nprovider = "stripe"\nfrom = "{url}"\nauthenticity = "queue"\n'


class Killed:
    """A command that is killed every so often, and started again, until it is left alone."""

    def __init__(self, directory, urls, configuration, *command):
        (directory / "hookonce.toml").write_text(configuration)
        self._directory, self._command = directory, command
        database_url, redis_url = urls
        ours = {name: value for name, value in os.environ.items() if not name.startswith("HOOKONCE_")}
        self._environ = ours | {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "SECRET": "whsec_test"}
        self._environ |= {"PYTHONPATH": str(ROOT), "HOOKONCE_LOG_LEVEL": "WARNING"}
        self._process = None

    def start(self):
        with (self._directory / "output.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "hookonce.receiver.cli", *self._command],
                cwd=self._directory,
                env=self._environ,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self):
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@pytest.fixture
def broker(tmp_path):
    server = Nats(tmp_path / "nats").start()
    yield server
    server.kill()


def run_with_kills(killed, broker, is_done, *, kills):
    """Kill the process so often, and the broker at every third time, while there is work; then wait for its end."""
    killed.start()
    try:
        for number in range(kills):
            time.sleep(KILL_EVERY)
            if is_done():
                break
            killed.kill()
            if number % round(BROKER_EVERY / KILL_EVERY) == 0:
                broker.kill()
                broker.start()
            killed.start()
        until(is_done, seconds=120)
    finally:
        killed.kill()


@pytest.mark.parametrize("number", SIZES)
def test_each_event_is_once_at_the_broker_whatever_is_killed(
    broker, tmp_path, database_url, redis_url, number
):
    broker.make_stream(duplicate_window=3600)
    ids = [f"e{n}" for n in range(number)]
    with connections.connect(database_url) as connection:
        for at in range(0, number, 500):
            store(connection, [new_event(each, body=stripe_event(each)) for each in ids[at : at + 500]])
    worker = Killed(
        tmp_path, (database_url, redis_url), FORWARD.format(url=broker.url()), "worker", "--processes", "2"
    )

    def is_done():
        with psycopg.connect(database_url) as connection:
            (left,) = connection.execute("SELECT count(*) FROM hookonce.queue").fetchone()
        return left == 0

    run_with_kills(worker, broker, is_done, kills=3 if number == 1000 else 40)

    arrived = Counter(headers["ce-id"] for headers, _ in broker.messages())
    assert set(arrived) == set(ids)
    assert set(arrived.values()) == {1}


async def fill(js, number):
    config = ConsumerConfig(durable_name="shop", ack_policy=AckPolicy.EXPLICIT, ack_wait=1)
    await js.add_consumer(STREAM, config)
    for n in range(number):
        await js.publish("events.paid", stripe_event(n))


async def unacknowledged(js):
    info = await js.consumer_info(STREAM, "shop")
    return info.num_pending + info.num_ack_pending


def events_of(database_url):
    with psycopg.connect(database_url) as connection:
        return sorted(each for (each,) in connection.execute("SELECT event_id FROM hookonce.events"))


@pytest.mark.parametrize("number", [pytest.param(4000, id="small"), *SIZES[1:]])
def test_each_message_is_one_event_whatever_is_killed(broker, tmp_path, database_url, redis_url, number):
    broker.make_stream()

    broker.ask(partial(fill, number=number))
    url = f"{broker.url()}?durable=shop"
    consumer = Killed(tmp_path, (database_url, redis_url), CONSUMER.format(url=url), "consume")

    def is_done():
        return broker.ask(unacknowledged) == 0

    run_with_kills(consumer, broker, is_done, kills=3 if number == 4000 else 40)

    assert events_of(database_url) == sorted(f"evt_{n}" for n in range(number))
