"""Honest senders with 40 ms of round trip, each with one delivery at a time: what they wait for an answer.

The way is slept, on their side: half of it before what they send leaves, half of it after the answer is there. Making a
connection takes its round trips too, TLS one more, and is not counted.
"""

import contextlib
import socket
import ssl
import threading
import time

from tests.support.attacks.honest import TIMEOUT, Waits

ROUND_TRIP = 0.04


class Line:
    """A connection over a long way, in plain or under TLS."""

    def __init__(self, port, context=None, address=""):
        self._socket = socket.create_connection(
            ("127.0.0.1", port), timeout=TIMEOUT, source_address=(address, 0) if address else None
        )
        time.sleep(ROUND_TRIP)
        self._tls = None
        if context is not None:
            try:
                self._shake_hands(context)
            except BaseException:
                self._socket.close()
                raise

    def _shake_hands(self, context):
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(self._incoming, self._outgoing)
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.do_handshake()
                self._socket.sendall(self._outgoing.read())
                break
            self._socket.sendall(self._outgoing.read())
            time.sleep(ROUND_TRIP)
            self._receive_raw()
        self._tls = tls

    def _receive_raw(self):
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionResetError("the receiver hung up")
        self._incoming.write(data)

    def _receive(self):
        if self._tls is None:
            data = self._socket.recv(65536)
        else:
            while True:
                with contextlib.suppress(ssl.SSLWantReadError):
                    data = self._tls.read(65536)
                    break
                self._receive_raw()
        if not data:
            raise ConnectionResetError("the receiver hung up")
        return data

    def ask(self, data):
        """Send a request and give the status of its answer."""
        time.sleep(ROUND_TRIP / 2)
        if self._tls is not None:
            self._tls.write(data)
            data = self._outgoing.read()
        self._socket.sendall(data)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._receive()
        head, _, body = answer.partition(b"\r\n\r\n")
        size = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        while len(body) < size:
            body += self._receive()
        time.sleep(ROUND_TRIP / 2)
        return int(head.split()[1])

    def close(self):
        """Hang up."""
        self._socket.close()


class Senders:
    """So many senders until the block ends; every other one makes a connection for each delivery."""

    def __init__(self, port, make, context=None, count=8, pause=0.1, address=""):
        self.waits = Waits()
        self._port, self._make, self._context, self._address = port, make, context, address
        self._pause = pause
        self._enough = threading.Event()
        self._threads = [
            threading.Thread(target=self._send, args=(number % 2 == 0,)) for number in range(count)
        ]

    def __enter__(self):
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_):
        self._enough.set()
        for each in self._threads:
            each.join()

    def _send(self, keeps):
        line = None
        while not self._enough.wait(self._pause):
            began = time.monotonic()
            try:
                if line is None:
                    line = Line(self._port, self._context, self._address)
                began = time.monotonic()
                status = line.ask(self._make())
                self.waits.seconds.append(time.monotonic() - began)
                if status != 200:
                    self.waits.wrong.append(status)
            except OSError as error:
                self.waits.wrong.append(f"{error!r} after {time.monotonic() - began:.2f} s, kept: {keeps}")
                line = line and line.close()
            if line is not None and not keeps:
                line = line.close()
        if line is not None:
            line.close()
