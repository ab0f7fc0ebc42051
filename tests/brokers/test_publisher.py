"""A publisher ends with what it was made for, and with its process; a fork of that leaves it alone."""

import subprocess
import sys
import threading

from hookonce.receiver.config.addresses import Address
from hookonce.receiver.outbound.brokers import broker
from hookonce.receiver.outbound.brokers.port import Message, Publisher
from tests.support.waiting import until

PROGRAM = """
import os, sys
from hookonce.receiver.config.addresses import Address
from hookonce.receiver.outbound.brokers.port import Broker, Publisher

class Loud(Broker):
    send = fetch = acknowledge = give_back = look = None

    async def close(self):
        print("closed", os.getpid() == parent, flush=True)

parent, kept = os.getpid(), Publisher(Loud(Address.parse("nats://host/orders")))
if os.fork():
    print("child ended with", os.wait()[1], flush=True)
"""


def threads():
    return {each for each in threading.enumerate() if each.name == "hookonce-broker"}


def test_publisher_that_nothing_needs_any_more_closes_its_connection_and_ends_its_thread(nats_broker):
    before, place = threads(), broker(Address.parse(nats_broker.url()))
    publisher = Publisher(place)
    outcomes = publisher.publish([Message("m", "t", "g", {}, b"{}")])
    client = place._client  # noqa: SLF001  what is to be closed
    assert (outcomes, client.is_connected, len(threads() - before)) == ([None], True, 1)

    del publisher

    assert (client.is_closed, threads() - before) == (True, set())


def test_publisher_that_is_forgotten_on_its_own_thread_ends_that(nats_broker, monkeypatch):
    before, place, errors = threads(), broker(Address.parse(nats_broker.url())), []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    publishers = [Publisher(place)]
    publishers[0].publish([Message("m", "t", "g", {}, b"{}")])
    client = place._client  # noqa: SLF001  what is to be closed

    publishers[0]._loop.call_soon_threadsafe(publishers.clear)  # noqa: SLF001  as the garbage collector may

    until(lambda: threads() <= before)
    assert (client.is_closed, errors) == (True, [])


def test_publisher_is_closed_at_the_end_of_its_process_and_not_by_a_fork():
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )

    assert (ran.stdout.splitlines(), ran.stderr) == (["child ended with 0", "closed True"], "")
