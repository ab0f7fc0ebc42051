"""The load generator, a process of its own: `python -m bench.load.generator '<plan as JSON>'`, standard library only.

It makes its requests, says `ready`, waits for a line on stdin, sends, and prints one JSON object. *Closed*:
every connection sends its next request when the last was answered; finds peaks. *Open* (`rate`): requests
go out on a schedule whatever the answers do, and latency counts from the scheduled time, so a server that
stalls can't hide it (Python's epoll waits whole milliseconds: up to 1 ms is ours). A generator that itself comes late
measures itself: then it gives no p99. Keep-alive throughout.
"""

import json
import select
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle, islice

from bench.load.deliveries import bare, deliveries, stripe_deliveries

ANSWER_TIMEOUT = 10.0  # seconds for the answers still out when the clock stops
MAX_CONNECTIONS = 512
MOST_LAG = 0.1
"""Text in place of a p99 that may be the generator's own lateness."""
_EPOLL = 0.001
"""Seconds: what epoll rounds up to."""
_NO_ANSWER = "no answer"


@dataclass
class Plan:
    """What to send: `count` requests made; for `seconds` (None: each once), or as many times as it takes (`again`)."""

    port: int
    path: str = "/hooks/github"
    count: int = 1
    sender: str = "github"
    type: str = "push"
    random: bool = False
    bare: bool = False
    again: bool = False
    seconds: float | None = None
    warm: float = 0.0
    connections: int = 32
    rate: float | None = None
    made: list[bytes] = field(default_factory=list)

    def make(self) -> None:
        """Make the requests."""
        if self.bare:
            self.made = [bare(self.path)]
        elif self.sender == "stripe":
            self.made = stripe_deliveries(self.count, self.path)
        else:
            self.made = deliveries(self.count, self.path, type=self.type, random=self.random)

    def requests(self) -> Iterator[bytes]:
        """Return the requests in the order to send."""
        return cycle(self.made) if self.again or self.bare else iter(self.made)


class Connection:
    """One keep-alive connection with at most one request on its way."""

    __slots__ = ("_port", "_request", "buffer", "is_new", "is_waiting", "since", "socket")

    def __init__(self, port: int) -> None:
        self._port = port
        self._request = b""
        self.buffer = b""
        self.since = 0.0
        self.is_waiting = False
        self.connect()

    def connect(self) -> None:
        """Open it (again)."""
        self.socket = socket.create_connection(("127.0.0.1", self._port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)  # noqa: FBT003  the socket module's signature
        self.is_new = True

    def send(self, request: bytes, since: float) -> None:
        """Send a request that counts from `since`."""
        self.since = since
        self._request = request
        self.buffer = b""
        self.is_waiting = True
        with suppress(BrokenPipeError, ConnectionResetError):  # to be read: no answer
            self.socket.sendall(request)

    @property
    def was_idle(self) -> bool:
        """Whether what is cut off now was answered before: the server closed it for having lain idle."""
        return not (self.is_new or self.buffer)

    def send_again(self) -> None:
        """Open it again and send what got no answer, counted from when it was to be sent."""
        self.connect()
        self.send(self._request, self.since)

    def status(self) -> str | None:
        """Read; give the status of a complete answer, None while it is not; `no answer` if it was cut off."""
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return None
        except OSError:
            return _NO_ANSWER
        if not data:
            return _NO_ANSWER
        buffer = self.buffer = self.buffer + data if self.buffer else data
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = buffer[:end].lower()
        at = head.find(b"\r\ncontent-length:")
        length = int(head[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        return buffer[9:12].decode() if len(buffer) >= end + 4 + length else None


class Load:
    """Carries a plan out; `statuses`, `latencies` (seconds, after the warm-up) and `span` are what came of it.

    `lags` are the seconds by which requests of an open loop left late.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._poll = select.epoll()
        self._open: dict[int, Connection] = {}
        self._free: list[Connection] = []
        self.statuses: Counter[str] = Counter()
        self.latencies: list[float] = []
        self.lags: list[float] = []
        self.span = 0.0
        for _ in range(plan.connections):
            self._free.append(self._connect())

    def run(self) -> None:
        """Send everything and collect the answers."""
        plan = self._plan
        self._start = time.perf_counter()
        self._counts_from = self._start + plan.warm
        until = self._start + plan.seconds if plan.seconds else float("inf")
        requests = plan.requests()
        if plan.rate is None:
            last = self._closed(requests, until)
        else:
            last = self._scheduled(list(islice(requests, int(plan.rate * (plan.seconds or 1)))), plan.rate)
        self.span = min(last, until) - self._counts_from

    def _closed(self, requests: Iterator[bytes], until: float) -> float:
        """Keep every connection busy until the time or the requests are over; give the time of the last answer."""
        now = time.perf_counter()
        for connection in self._free:
            connection.send(next(requests), now)
        busy = len(self._free)
        while busy:
            for connection in self._answered(until + ANSWER_TIMEOUT - now):
                now = time.perf_counter()
                self._note(connection, now, until)
                request = next(requests, None) if now < until else None
                if request is None:
                    busy -= 1
                else:
                    connection.send(request, now)
            if now > until + ANSWER_TIMEOUT:
                self.statuses[_NO_ANSWER] += busy
                break
        return now

    def _scheduled(self, requests: Sequence[bytes], rate: float) -> float:
        sent = answered = 0
        end = self._start + len(requests) / rate + ANSWER_TIMEOUT
        while answered < len(requests):
            now = time.perf_counter()
            while sent < len(requests) and self._start + sent / rate <= now and self._has_room():
                connection = self._free.pop() if self._free else self._connect()
                due = self._start + sent / rate
                connection.send(requests[sent], due)
                self.lags.append(time.perf_counter() - due)
                sent += 1
            due = self._start + sent / rate if sent < len(requests) else end
            wait = max(due - now, 0) if self._has_room() else 1.0
            for connection in self._answered(wait):
                answered += 1
                self._note(connection, time.perf_counter(), float("inf"))
                self._free.append(connection)
            if now > end:
                self.statuses[_NO_ANSWER] += len(requests) - answered
                break
        return time.perf_counter()

    def _answered(self, timeout: float) -> Iterator[Connection]:
        for number, _ in self._poll.poll(min(timeout, 1.0)):
            connection = self._open[number]
            if not connection.is_waiting:  # the server has closed what lay idle for long
                self._reopen(connection, connection.connect)
                continue
            status = connection.status()
            if status is None:
                continue
            if status == _NO_ANSWER and connection.was_idle:  # it did so while the request was on its way
                self._reopen(connection, connection.send_again)
                continue
            connection.is_waiting = connection.is_new = False
            self.statuses[status] += 1
            if status == _NO_ANSWER:
                self._reopen(connection, connection.connect)
            yield connection

    def _note(self, connection: Connection, now: float, until: float) -> None:
        if self._counts_from <= now <= until:
            self.latencies.append(now - connection.since)

    def _has_room(self) -> bool:
        """Tell whether a request can leave now; one that can't leaves late, and its time counts all the same."""
        return bool(self._free) or len(self._open) < MAX_CONNECTIONS

    def _connect(self) -> Connection:
        connection = Connection(self._plan.port)
        self._open[connection.socket.fileno()] = connection
        self._poll.register(connection.socket, select.EPOLLIN)
        return connection

    def _reopen(self, connection: Connection, how: Callable[[], None]) -> None:
        del self._open[connection.socket.fileno()]
        connection.socket.close()
        how()
        self._open[connection.socket.fileno()] = connection
        self._poll.register(connection.socket, select.EPOLLIN)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed; 0 if there are none."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


def p99(latencies: Sequence[float], lags: Sequence[float]) -> float | None:
    """Return the latency that one in a hundred exceeds; None if the generator's own lateness is too much of it."""
    found = quantile(latencies, 0.99)
    return found if quantile(lags, 0.99) <= max(_EPOLL, MOST_LAG * found) else None


def main() -> None:
    """Carry out the plan on the command line."""
    plan = Plan(**json.loads(sys.argv[1]))
    plan.make()
    print("ready", flush=True)
    sys.stdin.readline()
    load = Load(plan)
    cpu = time.process_time()
    load.run()
    counted = len(load.latencies)
    tail = p99(load.latencies, load.lags)
    answer = {
        "rate": counted / load.span if load.span > 0 else 0.0,
        "answered": load.statuses.total(),
        "statuses": load.statuses,
        "p50_ms": quantile(load.latencies, 0.5) * 1000,
        "p99_ms": None if tail is None else tail * 1000,
        "longest_ms": max(load.latencies, default=0.0) * 1000,
        "lag_ms": quantile(load.lags, 0.99) * 1000,
        "cpu_us": (time.process_time() - cpu) / max(load.statuses.total(), 1) * 1e6,
    }
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
