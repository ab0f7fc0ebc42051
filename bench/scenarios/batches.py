"""Many events in one delivery: how long its answer takes, and what it adds to the memory of a process."""

import base64
import hashlib
import hmac
import http.client
import json
import time
import uuid

from bench.load.deliveries import SECRET
from bench.load.sending import BadAnswers
from bench.run import Run
from bench.servers.process_costs import peak_megabytes
from bench.servers.stack import Server
from hookonce.receiver.dev.embedded.process import children

EVENTS = 10_000


def batches(run: Run) -> None:
    """Send Xero's batches of new events, each time to a process that has had a small one."""
    ours = run.stack.ours
    for _ in run.rounds(5, 1, 6):
        with ours.serve("wsgi:application", workers=1) as server:
            _send(server, 1)
            (process,) = children(server.pid)
            before = peak_megabytes([process])
            seconds = _send(server, EVENTS)
            run.note(batch_ms=seconds * 1000, batch_mb=peak_megabytes([process]) - before)
        ours.empty()


def _send(server: Server, count: int) -> float:
    """Deliver so many new events at once; give the seconds until the answer. Raises `BadAnswers`."""
    tenant = str(uuid.uuid4())
    events = [
        {
            "resourceUrl": f"https://api.xero.com/api.xro/2.0/Invoices/{number}",
            "resourceId": str(number),
            "eventDateUtc": "2026-01-15T12:00:00.000",
            "eventType": "UPDATE",
            "eventCategory": "INVOICE",
            "tenantId": tenant,
            "tenantType": "ORGANISATION",
        }
        for number in range(count)
    ]
    body = json.dumps(
        {"events": events, "lastEventSequence": count, "firstEventSequence": 1, "entropy": "S0"}
    )
    signature = base64.b64encode(hmac.digest(SECRET.encode(), body.encode(), hashlib.sha256)).decode()
    headers = {"Content-Type": "application/json", "X-Xero-Signature": signature}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    begun = time.perf_counter()
    connection.request("POST", "/hooks/xero", body, headers)
    answer = connection.getresponse()
    answer.read()
    seconds = time.perf_counter() - begun
    connection.close()
    if answer.status != http.client.OK:
        raise BadAnswers(f"a batch of {count} events was answered with {answer.status}")
    return seconds
