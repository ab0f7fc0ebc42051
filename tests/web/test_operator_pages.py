import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from hookonce.receiver.processes.waits import OnLoop
from hookonce.receiver.web import operator_pages
from hookonce.receiver.web.operator_pages import Shared
from hookonce.receiver.web.response import Response


def test_who_waits_for_an_answer_gets_it_though_the_next_is_being_made(monkeypatch):
    monkeypatch.setattr(operator_pages, "LASTS", -1.0)  # each is out of date at once
    go = threading.Event()
    shared = Shared(lambda: (go.wait(10), Response(200, b""))[1])

    async def ask():
        with ThreadPoolExecutor(2) as threads:
            waits = OnLoop(threads, threads)

            async def twice():
                return [await shared(waits), await shared(waits)]

            asked = asyncio.gather(twice(), shared(waits))
            asyncio.get_running_loop().call_later(0.05, go.set)
            first, beside = await asked
            return [each.status for each in (*first, beside)]

    assert asyncio.run(ask()) == [200, 200, 200]
