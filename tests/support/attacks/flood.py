"""`python -m tests.support.attacks.flood NAME PORT COUNT SECONDS [--tls] [--addresses N]`: an attack.

Connections that are cut off are made anew. All come from 127.0.0.1, or by turns from so many addresses of loopback.
Prints what it got through as JSON. It is nice to others: a stranger's work is done on the stranger's machine.
"""

import argparse
import contextlib
import errno
import itertools
import json
import os
import resource
import selectors
import socket
import ssl
import sys
import time
from heapq import heappop, heappush
from typing import NamedTuple

HEAD = b"POST /hooks/stripe HTTP/1.1\r\nHost: test\r\nStripe-Signature: t=1,v1=" + b"0" * 64 + b"\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
UNSIGNED = b"POST /hooks/stripe HTTP/1.1\r\nHost: test\r\nContent-Length: 17\r\n\r\n" + b'{"id":"evt_none"}'
FORGED = HEAD + b"Content-Length: 17\r\n\r\n" + b'{"id":"evt_none"}'
BEGUN_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
HALF_HELLO = BEGUN_HELLO + b"\0" * 100
"""The beginning of a TLS handshake, whose rest never comes."""
LARGE = 25 * 1024 * 1024


class Attack(NamedTuple):
    """What each connection sends first, and then again and again; how often it hangs up by itself."""

    start: bytes
    more: bytes = b""
    reads: bool = True
    count: int = 200
    leaves_after: int = 0  # bytes
    is_raw: bool = False
    """Under TLS too these bytes are sent as they are: no handshake is ended."""
    pause: float = 0.0
    """Seconds before `more` is sent again."""


def get(target):
    return b"GET %b HTTP/1.1\r\nHost: test\r\n\r\n" % target


ATTACKS = {
    "nobody": Attack(b"", count=0),
    "pipelined GETs": Attack(b"", get(b"/livez") * 400),
    "pipelined forgeries": Attack(b"", FORGED * 200),
    "pipelined, nothing read": Attack(b"", get(b"/livez") * 400, reads=False),
    "pipelined forgeries, nothing read": Attack(b"", FORGED * 200, reads=False),
    "chunks of one byte": Attack(CHUNKED, b"1\r\nx\r\n" * 4000),
    "chunks of empty lines": Attack(CHUNKED + b"fffffff\r\n", b"\r\n\r\n" * 8000),
    "chunk extensions": Attack(CHUNKED, b"1;a=" + b"b" * 60 + b"\r\nx\r\n" * 200),
    "endless chunk extension": Attack(CHUNKED + b"1;a=", b"b" * 32000),
    "trailers": Attack(CHUNKED + b"0\r\n", b"A: b\r\n" * 4000),
    "endless heads": Attack(b"POST / HTTP/1.1\r\n", b"A: " + b"b" * 4000 + b"\r\n"),
    "endless small headers": Attack(b"POST / HTTP/1.1\r\n", b"A: b\r\n" * 1000),
    "heads held open": Attack(b"POST / HTTP/1.1\r\n" + (b"A: " + b"b" * 2000 + b"\r\n") * 60, count=2000),
    "large forged bodies": Attack(b"", HEAD + b"Content-Length: %d\r\n\r\n" % LARGE + b"x" * LARGE, count=64),
    "idle connections": Attack(b"", count=6000),
    "half-open TLS": Attack(HALF_HELLO, count=400, is_raw=True),
    "unsigned probes": Attack(b"", UNSIGNED * 50),
    "bodies that drip": Attack(HEAD + b"Content-Length: 100000\r\n\r\n", b"x"),
    "metrics": Attack(b"", get(b"/metrics") * 50),
    "readiness": Attack(b"", get(b"/readyz") * 50),
    "junk": Attack(bytes(range(256)) * 16, leaves_after=4096),
    "connections that come and go": Attack(get(b"/livez"), leaves_after=1),
    "silent handshakes": Attack(BEGUN_HELLO, count=3000, is_raw=True),
    "held probes": Attack(UNSIGNED, count=8000),
    "modest clients": Attack(get(b"/livez"), get(b"/livez"), count=3000, pause=0.6),
}
IP_BIND_ADDRESS_NO_PORT = 24
"""Of Linux, which Python 3.11 does not name: the port is chosen when it is known whereto."""


def source(number):
    """An address of loopback."""
    return f"127.0.{1 + number // 250}.{1 + number % 250}"


class Client:
    """One attacking connection, made anew whenever it ends."""

    def __init__(self, attack, port, context, selector, address, timers):
        self.attack = attack
        self.address = address
        self.timers = timers
        self.port = port
        self.context = None if attack.is_raw else context
        self.selector = selector
        self.socket = None
        self.sent = self.connected = 0

    def connect(self):
        self.close()
        raw = socket.socket()
        raw.settimeout(0)
        if self.address:
            raw.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
            raw.bind((self.address, 0))
        if raw.connect_ex(("127.0.0.1", self.port)) not in {0, errno.EINPROGRESS, errno.EAGAIN}:
            raw.close()
            return
        self.socket = raw
        self.is_ready = self.context is None
        self.data = itertools.chain([self.attack.start], itertools.repeat(self.attack.more))
        self.left = memoryview(next(self.data))
        self.mine = 0
        self.selector.register(raw, selectors.EVENT_WRITE | selectors.EVENT_READ, self)

    def close(self):
        if self.socket is not None:
            with contextlib.suppress(KeyError, ValueError):
                self.selector.unregister(self.socket)
            self.socket.close()
            self.socket = None

    def go_on(self, events):
        try:
            if self.context is not None and not isinstance(self.socket, ssl.SSLSocket):
                self._wrap()
                return
            if not self.is_ready:
                self.socket.do_handshake()
                self.is_ready = True
                self._listen(selectors.EVENT_WRITE | selectors.EVENT_READ)
                return
            if events & selectors.EVENT_READ and self.attack.reads:
                self._read()
            if events & selectors.EVENT_WRITE:
                self._write()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError) as wants:
            if isinstance(wants, ssl.SSLWantReadError) and not self.is_ready:
                self._listen(selectors.EVENT_READ)
            elif not self.is_ready:
                self._listen(selectors.EVENT_WRITE | selectors.EVENT_READ)
        except (OSError, EOFError):
            self.close()

    def _wrap(self):
        self.selector.unregister(self.socket)
        self.socket = self.context.wrap_socket(
            self.socket, do_handshake_on_connect=False, suppress_ragged_eofs=True
        )
        self.selector.register(self.socket, selectors.EVENT_WRITE | selectors.EVENT_READ, self)

    def _listen(self, events):
        self.selector.modify(self.socket, events, self)

    def _read(self):
        with contextlib.suppress(ssl.SSLWantReadError, BlockingIOError):
            if not self.socket.recv(262144):
                raise EOFError
            if self.attack.leaves_after and self.mine >= self.attack.leaves_after:
                raise EOFError

    def _write(self):
        if not self.connected_yet():
            return
        if not self.left:
            self.left = memoryview(next(self.data))
            if self.attack.pause:
                self._listen(selectors.EVENT_READ)
                heappush(self.timers, (time.monotonic() + self.attack.pause, id(self.socket), self))
                return
        if not self.left:
            self._listen(selectors.EVENT_READ)
            return
        if self.attack.leaves_after and self.mine >= self.attack.leaves_after:
            self._listen(selectors.EVENT_READ)
            return
        sent = self.socket.send(self.left[:262144])
        self.left = self.left[sent:]
        self.sent += sent
        self.mine += sent

    def wake(self, number):
        """Send again, if it is still the same connection."""
        if self.socket is not None and id(self.socket) == number:
            self._listen(selectors.EVENT_WRITE | selectors.EVENT_READ)

    def connected_yet(self):
        if self.mine == 0:
            self.connected += 1
        return True


def attack(name, port, count, seconds, context=None, addresses=0):
    """Attack for so long; give the bytes sent and the connections made."""
    selector = selectors.EpollSelector()
    timers = []
    clients = [
        Client(
            ATTACKS[name], port, context, selector, source(number % addresses) if addresses else "", timers
        )
        for number in range(count)
    ]
    end = time.monotonic() + seconds
    waiting = list(clients)
    while (now := time.monotonic()) < end:
        for client in waiting[:50]:
            with contextlib.suppress(OSError):
                client.connect()
        while timers and timers[0][0] < now:
            _, number, client = heappop(timers)
            client.wake(number)
        for key, events in selector.select(0.01):
            key.data.go_on(events)
        waiting = [client for client in clients if client.socket is None]
    return {"sent": sum(c.sent for c in clients), "connected": sum(c.connected for c in clients)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=ATTACKS)
    parser.add_argument("port", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--addresses", type=int, default=0)
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard > 0 else soft, hard))
    os.nice(10)
    context = None
    if options.tls:
        context = ssl._create_unverified_context()  # noqa: S323, SLF001  a test's own certificate
    through = attack(options.name, options.port, options.count, options.seconds, context, options.addresses)
    sys.stdout.write(json.dumps(through))


if __name__ == "__main__":
    main()
