"""Clients that ask for commands, each under a key of its own, until they know what came of it, and then once more."""

import json
import threading
import time
from collections import defaultdict

from tests.support.stories.sending import exchange

TOKEN = "token-of-the-clients-of-the-soak"
SOURCE = "commands.orders"
CONFIGURATION = """
[commands.orders]
handler = "tests.soak.orders:order"
auth = { soak = ["env:SOAK_TOKEN"] }
attempts = 10
"""
MADE = "CREATE TABLE ordered (number int)"
HOLD = 0.1
"""Seconds that every tenth order has its work in hand."""
TRIES = 1000
AGAIN, BREATH = 0.05, 0.05
DONE = 200


class Clients:
    """So many clients, in threads of their own from `start` to `stop`."""

    def __init__(self, path, count):
        self._path = path
        self._enough = threading.Event()
        self._threads = [threading.Thread(target=self._ask_on, args=[n, count]) for n in range(count)]
        self.answers = defaultdict(list)
        """What was said of each number in the end, as (status, document)."""
        self.unanswered = []

    def start(self):
        for thread in self._threads:
            thread.start()

    def stop(self):
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def mistakes(self, ordered):
        """What must not be, given the numbers that took effect: none twice, none unasked, one answer to each."""
        for number, answers in self.answers.items():
            if answers != [(DONE, {"ordered": number})] * len(answers):
                yield f"command {number} was answered {answers}"
            if (count := ordered.count(number)) != 1:
                yield f"command {number} took effect {count} times"
        yield from (f"command {number} never got its answer" for number in self.unanswered)
        for number in set(ordered) - set(self.answers) - set(self.unanswered):
            yield f"command {number} took effect, and nobody asked for it"

    def _ask_on(self, number, step):
        while not self._enough.wait(BREATH):
            for _ in range(2):
                self._insist(number)
            number += step

    def _insist(self, number):
        body = json.dumps({"number": number, "hold": HOLD if number % 10 == 0 else 0}).encode()
        headers = {
            "content-type": "application/json",
            "authorization": f"Bearer {TOKEN}",
            "idempotency-key": f"order-{number}",
        }
        for _ in range(TRIES):
            answer = exchange(self._path, "/commands/orders", body, headers)
            if answer is not None and answer[0] not in {202, 429, 503}:
                self.answers[number].append(answer)
                return
            time.sleep(AGAIN)
        self.unanswered.append(number)
