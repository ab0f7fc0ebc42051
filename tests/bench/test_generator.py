"""A load generator that is held up says so, and gives no p99, which would be its own."""

import contextlib
import os
import signal
import socketserver
import threading
import time

import pytest

from bench.load.generator import Plan
from bench.load.sending import prepare
from tests.support.waiting import until

RATE, SECONDS, HELD_UP = 200, 1.0, 0.3


class Answers(socketserver.StreamRequestHandler):
    def handle(self):
        with contextlib.suppress(ConnectionResetError):  # the generator has ended
            while line := self.rfile.readline():
                if line == b"\r\n":
                    self.server.answered += 1
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


class Server(socketserver.ThreadingTCPServer):
    answered = 0
    daemon_threads = True
    request_queue_size = 512


@pytest.fixture
def server():
    with Server(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_generator_that_is_held_up_gives_no_p99(server):
    plan = Plan(server.server_address[1], bare=True, path="/", seconds=SECONDS, connections=2, rate=RATE)
    load = prepare(plan)
    load.start()
    until(lambda: server.answered > RATE * SECONDS / 4)

    os.kill(load.process.pid, signal.SIGSTOP)
    time.sleep(HELD_UP)
    os.kill(load.process.pid, signal.SIGCONT)

    result = load.result()
    assert result["answered"] == RATE * SECONDS
    assert result["p99_ms"] is None
    assert result["lag_ms"] > HELD_UP * 1000 / 2
