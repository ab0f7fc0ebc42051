"""What honest senders and probes notice: requests on a schedule, each over a connection of its own."""

import json
import math
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from tests.support import raw_http

TIMEOUT = 20


class Waits:
    """How long answers took, in seconds from when the request was due; and what was wrong with some."""

    def __init__(self):
        self.seconds = []
        self.wrong = []

    def at(self, share):
        """The wait that such a share of all did not exceed."""
        return sorted(self.seconds)[max(0, math.ceil(share * len(self.seconds)) - 1)] if self.seconds else 0

    @property
    def longest(self):
        return max(self.seconds, default=0)


class Schedule:
    """Sends `make()` to a port so many times a second until the block ends; `waits` has the outcome."""

    def __init__(self, port, rate, make, context=None):
        self.waits = Waits()
        self._port, self._pause, self._make, self._context = port, 1 / rate, make, context
        self._enough = threading.Event()
        self._pool = ThreadPoolExecutor(64)
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._enough.set()
        self._thread.join()
        self._pool.shutdown()

    def _run(self):
        due = time.monotonic()
        while not self._enough.wait(max(0, due - time.monotonic())):
            self._pool.submit(self._ask, due)
            due += self._pause

    def _ask(self, due):
        try:
            with raw_http.connect(self._port, TIMEOUT, self._context) as client:
                answer = next(raw_http.converse(client, self._make()), None)
            took = time.monotonic() - due
            if answer is None or answer.status != 200:
                self.waits.wrong.append(answer and (answer.status, answer.code))
        except OSError as error:
            took = time.monotonic() - due
            self.waits.wrong.append(repr(error))
        self.waits.seconds.append(took)


def delivery(sender, secret, target="/hooks/stripe", *, keeps=False):
    """A function that makes new, signed deliveries, each on a connection that is then closed unless one keeps it."""
    closing = [] if keeps else [("Connection", "close")]

    def make():
        body = json.dumps({"id": f"evt_{uuid.uuid4().hex}", "type": "a"}).encode()
        headers = sender.sign(body, secret, datetime.now(UTC))
        return raw_http.request(target=target, headers=[*headers.items(), *closing], body=body)

    return make


def probe(target):
    """A function that makes requests for a page."""
    data = raw_http.request("GET", target, {"Connection": "close"})
    return lambda: data
