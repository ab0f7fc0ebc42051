import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from hookonce.receiver.processes.waits import CHARGE_CLIENT, IN_THREAD, OnLoop, run

SHORT = 0.02


def on_loop(make):
    async def go():
        with ThreadPoolExecutor(1) as threads:
            return await make(OnLoop(threads, threads))

    return asyncio.run(go())


@pytest.fixture(params=[lambda make: run(make(IN_THREAD)), on_loop], ids=["thread", "loop"])
def waiting(request):
    return request.param


def test_server_is_asked_for_what_it_gives_or_raises(waiting):
    assert waiting(lambda waits: waits.ask_server(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        waiting(lambda waits: waits.ask_server(divmod, 7, 0))


def test_server_that_hangs_keeps_no_event_loop_and_no_process_from_ending():
    hung = threading.Event()

    async def go(waits):
        before = set(threading.enumerate())
        asked = asyncio.ensure_future(waits.ask_server(hung.wait))
        await asyncio.sleep(0)
        return [
            each.daemon for each in set(threading.enumerate()) - before if each.name == "hookonce-server"
        ], asked

    daemons, _ = on_loop(go)
    hung.set()

    assert daemons == [True]


def test_socket_is_waited_for_and_no_longer_than_wanted(waiting):
    ours, theirs = socket.socketpair()

    async def go(waits):
        before = await waits.readable(ours.fileno(), SHORT)
        theirs.send(b"x")
        return before, await waits.readable(ours.fileno(), SHORT), await waits.writable(ours.fileno())

    with ours, theirs:
        assert waiting(go) == (False, True, True)


def test_bell_is_waited_for_no_longer_than_wanted(waiting):
    async def go(waits):
        late, rung = waits.bell(), waits.bell()
        waits.ring([rung])
        return await waits.rung(late, timedelta(seconds=SHORT)), await waits.rung(rung)

    assert waiting(go) == (False, True)


def test_bells_are_rung_behind_one_whose_function_fails(caplog):
    called = []

    def fails(_in_time):
        raise LookupError("a body")

    async def go(waits):
        day = timedelta(days=1)
        bells = [waits.call(fails, day), waits.call(called.append, day), waits.bell()]
        waits.ring(bells)
        return await waits.rung(bells[-1])

    assert on_loop(go)
    assert called == [True]
    assert caplog.messages == ["what waited for a bell failed: LookupError"]


@pytest.mark.parametrize("way", ["ask", "compute"])
def test_work_of_a_thread_is_charged_to_the_client_that_it_was_done_for(way):
    charged = []

    def works():
        until = time.thread_time() + 0.05
        while time.thread_time() < until:
            pass
        raise LookupError

    async def go(waits):
        CHARGE_CLIENT.set(charged.append)
        with pytest.raises(LookupError):
            await getattr(waits, way)(works)
        await asyncio.sleep(0)

    on_loop(go)

    assert 0.05 <= sum(charged) < 0.5
