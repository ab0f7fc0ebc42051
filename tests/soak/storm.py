"""Processes of senders that let go of many copies of many events at one instant, and insist until each is taken."""

import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

from tests.support.stories.sending import post

THREADS = 12
"""Copies of one event that each process has on its way at the same moment."""
PATIENCE = 40.0
AGAIN = 0.05
BREATH = 0.3
"""Seconds that every process needs to be ready for the instant."""


class Storm:
    """Senders before one receiver."""

    def __init__(self, path, processes):
        self._path = path
        self._processes = processes
        self._pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
        list(self._pool.map(abs, range(processes)))

    def send(self, messages):
        """Send these, dealt to all processes, so that copies side by side go at the same time; give every answer."""
        at = time.monotonic() + BREATH
        sent = [
            self._pool.submit(_send, self._path, messages[n :: self._processes], at)
            for n in range(self._processes)
        ]
        return [delivery for each in sent for delivery in each.result()]

    def close(self):
        self._pool.shutdown()


def _send(path, messages, at):
    with ThreadPoolExecutor(THREADS) as pool:
        time.sleep(max(0.0, at - time.monotonic()))
        answers = pool.map(lambda message: _insist(path, message), messages)
        return [delivery for each in answers for delivery in each]


def _insist(path, message):
    deliveries = []
    deadline = time.monotonic() + PATIENCE
    while deadline > time.monotonic():
        deliveries.append(post(message, path))
        if deliveries[-1].status == 200:
            break
        time.sleep(AGAIN)
        message = message.again()
    return deliveries
