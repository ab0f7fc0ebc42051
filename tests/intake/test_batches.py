"""Batches: one bad element costs nobody else, a redelivery adds what is missing, ten thousand are one transaction."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver.ledger.database import connections

ROOT = Path(__file__).parents[2]
KEY = "the-key-of-the-batches"
MANY = 10_000
MOST = 64 * 1024 * 1024
MOST_READINGS = 90
"""What all of it may cost a receiver's CPU, in readings of the JSON by Python; a slow machine reads slowly too."""

BIG = """
import json, sys, time
from datetime import UTC, datetime
from pathlib import Path
from tests.support.in_process import Receiver
from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load

database_url, redis_url, key, many = sys.argv[1:]
receiver, provider = Receiver(database_url, redis_url), load("xero")
receiver.add("xero", provider, key)

def send(first, count):
    events = [
        {"resourceId": f"r{n}", "eventType": "UPDATE", "eventCategory": "INVOICE", "tenantId": "t",
         "eventDateUtc": "2026-01-01T00:00:00.000"}
        for n in range(first, first + count)
    ]
    body = json.dumps({"events": events, "entropy": "e"}).encode()
    headers = provider.sign(body, key, datetime.now(UTC))
    began = time.process_time()
    json.loads(body)
    read = time.process_time()
    status = receiver.send("xero", Delivery("POST", "", headers, body)).status_code
    readings.append((time.process_time() - read) / (read - began))
    return status

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024

readings = []
assert send(10**6, 1) == 200
before = peak()
answers = [send(0, int(many))]
while answers[-1] == 503 and len(answers) < 5:  # a machine with much else to do; senders come again too
    answers.append(send(0, int(many)))
grown = peak() - before
cost = max(readings[1:])
again = send(0, int(many))
receiver.close()
print(json.dumps({"status": answers[-1], "again": again, "bytes": grown, "readings": cost}))
"""


def batch(numbers, *, bad=()):
    events = [{"action": "added", "resource": {"gid": str(n), "resource_type": "task"}} for n in numbers]
    return json.dumps({"events": [*events, *bad]}).encode()


@pytest.fixture
def deliver(receiver, request):
    name = f"s{hashlib.sha256(request.node.name.encode()).hexdigest()[:8]}"
    receiver.add(name, load("asana"), KEY)

    def send(body, **more):
        headers = load("asana").sign(body, KEY, receiver.now) | more
        return receiver.send(name, Delivery("POST", "", headers, body)).status_code

    send.source = name
    return send


def test_a_batch_whose_headers_would_be_kept_too_often_is_kept_as_one_event(receiver, deliver):
    assert deliver(batch(range(1100)), padding="x" * 64 * 1024) == 200

    found = receiver.query("SELECT type, status FROM hookonce.event_states WHERE source = %s", deliver.source)
    assert found == [("unreadable", "dead")]


def test_batch_keeps_one_bad_element_raw_and_stores_the_others(receiver, deliver):
    assert deliver(batch(range(999), bad=["junk"])) == 200

    ((bad_id, raw, is_element),) = receiver.query(
        "SELECT e.event_id, b.body, b.is_element FROM hookonce.event_states e JOIN hookonce.bodies b ON b.event = e.id "
        "WHERE e.source = %s AND e.type = 'unreadable' AND e.status = 'dead' AND e.due_at IS NULL",
        deliver.source,
    )
    counts = receiver.query(
        "SELECT status, count(*) FROM hookonce.event_states WHERE source = %s GROUP BY 1", deliver.source
    )
    assert (raw, bad_id, is_element) == (b'"junk"', hashlib.sha256(raw).hexdigest(), True)
    assert dict(counts) == {"received": 999, "dead": 1}


def test_batch_that_comes_again_adds_only_what_is_missing(receiver, deliver):
    deliver(batch(range(3)))

    assert deliver(batch(range(10), bad=["junk"])) == 200

    counted = "SELECT count(*), count(DISTINCT event_id) FROM hookonce.event_states WHERE source = %s"
    assert receiver.query(counted, deliver.source) == [(11, 11)]


def test_ten_thousand_events_are_one_transaction_and_little_memory(database_url, redis_url):
    child = subprocess.run(
        [sys.executable, "-c", BIG, database_url, redis_url, KEY, str(MANY)],
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )

    said = json.loads(child.stdout)
    with connections.connect(database_url) as ledger:
        stored = ledger.execute(
            "SELECT count(*), count(DISTINCT received_at) FROM hookonce.event_states"
        ).fetchone()
    assert (said["status"], said["again"]) == (200, 200)
    assert stored == (MANY + 1, 2)  # now() is the same all through a transaction
    assert said["bytes"] < MOST, said
    assert said["readings"] < MOST_READINGS, said
