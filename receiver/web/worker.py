"""gunicorn's worker for an open network: one event loop, which reads and answers by `receiver.web.http`.

gunicorn stays what starts, watches, replaces and stops the processes. What has an endpoint (`mounted.FrontDoor`) is
answered on the loop. All else that the application answers, pages and the API, it answers in threads of its own
(`http.application`).
Any other worker class of gunicorn serves the same application, without the fairness and the bounds of this one
(docs/reference/http.md).
"""

import asyncio
import contextlib
import ctypes
import errno
import os
import resource
import signal
import socket
import ssl
import sys
import time
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import uvloop
from gunicorn import sock as gunicorn_sock
from gunicorn.errors import AppImportError
from gunicorn.workers.base import Worker

from hookonce.receiver.logs import limited
from hookonce.receiver.processes.collector import calm_collector
from hookonce.receiver.processes.waits import OnLoop, loop_threads
from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.answer import Answer
from hookonce.receiver.web.http.application import ApplicationThreads
from hookonce.receiver.web.http.clients import Clients
from hookonce.receiver.web.http.connection import Connection
from hookonce.receiver.web.http.crowd import Crowd, Graves, Pace
from hookonce.receiver.web.http.head import Head
from hookonce.receiver.web.http.request import Environ, base
from hookonce.receiver.web.http.settings import require_honoured
from hookonce.receiver.web.http.transport import SecureTransport, Transport
from hookonce.receiver.web.http.turns import Turns
from hookonce.receiver.web.mounted import door_of

log = limited(__name__)

MMAP_THRESHOLD = 256 * 1024
"""Bytes of an allocation from which on it is a mapping of its own, which goes back to the system when it is freed."""
SWITCH_INTERVAL = timedelta(milliseconds=1)
"""For how long a thread computes while the loop has something to do."""
_M_MMAP_THRESHOLD = -3  # <malloc.h>
_BEAT = 1.0  # seconds between two signs of life to gunicorn
_SOON = 0.05  # seconds
_OWN_FILES = 500  # open files that are no client's
_NO_MORE = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


def return_large_memory() -> None:
    """Keep glibc from raising the size above which allocations are mappings: mallopt(3), M_MMAP_THRESHOLD.

    By default the first large body that is freed raises it to 32 MB. From then on bodies share a heap, in which what
    was freed stays where something small lies behind it: two thirds more memory at the height of a flood of large
    bodies, and as much again that is kept when it is over.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # musl has none, and needs none
        mallopt(_M_MMAP_THRESHOLD, MMAP_THRESHOLD)


class LoopWorker(Worker):  # type: ignore[misc]  # gunicorn has no types
    """The worker class of `receiver.web.gunicorn_conf`; what its connections share."""

    is_closing = _is_hasty = False

    @classmethod
    def check_config(cls, cfg: Any, _log: Any) -> None:  # noqa: ANN401
        """Refuse settings that would be passed over (gunicorn asks before it forks)."""
        require_honoured(cfg)

    def load_wsgi(self) -> None:
        """Load the application; what is wrong with its configuration is told as it is, and not as a traceback."""
        try:
            super().load_wsgi()
        except Exception as error:
            if not hasattr(error, "mistakes"):  # a `ConfigError`
                raise
            raise AppImportError(f"hookonce: {error}") from None
        calm_collector()

    def run(self) -> None:
        """Accept and answer until told to stop, then finish what is under way."""
        return_large_memory()
        sys.setswitchinterval(SWITCH_INTERVAL.total_seconds())
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        cfg = self.cfg
        self.loop = loop = asyncio.get_running_loop()
        self._listen_to_signals()
        door = door_of(self.wsgi)
        self.application = ApplicationThreads(door.otherwise)
        self.endpoint_at, self.waits = door.at, OnLoop(*loop_threads())
        self.turns, self.clients, self.crowd = (
            Turns(loop),
            Clients(door.proxies),
            Crowd(cfg.worker_connections),
        )
        self.graves = Graves(_spare_files(cfg.worker_connections), limits.GRAVE_TIME)
        self.refusals = Pace(limits.REFUSALS_A_SECOND, limits.REFUSALS_AT_ONCE, limits.LONGEST_REFUSAL)
        self.keepalive = float(cfg.keepalive)
        self.head_limits = (
            cfg.limit_request_line or limits.HEAD_SIZE,
            cfg.limit_request_fields or limits.HEAD_SIZE,
            cfg.limit_request_field_size or limits.HEAD_SIZE,
        )
        self.is_logged = bool(cfg.statsd_host) or getattr(self.log, "access_log_enabled", True)
        self._connections: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()
        context = gunicorn_sock.ssl_context(cfg) if cfg.is_ssl else None
        acceptors = [loop.create_task(self._accept(each.sock, context)) for each in self.sockets]
        watch = loop.create_task(self._watch())
        while self.alive:
            self.notify()
            if self.ppid != os.getppid():
                self.log.info("Parent changed, shutting down: %s", self)
                break
            await self._rest(_BEAT)
        self._end()
        for acceptor in acceptors:
            acceptor.cancel()
        for each in self.sockets:
            loop.remove_reader(each.sock.fileno())
            each.close()
        await self._finish()
        watch.cancel()
        self.graves.empty()

    def count_request(self) -> None:
        """Note that a request came; after `max_requests` the worker ends, and gunicorn starts another."""
        self.nr += 1
        if self.nr >= self.max_requests and self.alive:
            self.log.info("Autorestarting worker after current request.")
            self._end()

    def note_access(self, head: Head, answer: Answer, environ: Environ, began: float) -> None:
        """Write a line of the access log."""
        response = SimpleNamespace(status=answer.status, headers=answer.headers, sent=answer.size)
        request = SimpleNamespace(headers=list(zip(head.names.lower, head.values, strict=True)))
        self.log.access(response, request, environ, timedelta(seconds=time.time() - began))

    def init_signals(self) -> None:
        """Listen to signals as gunicorn's other workers do until the loop does, but leave waking up to the loop."""
        super().init_signals()
        signal.set_wakeup_fd(-1)

    def _listen_to_signals(self) -> None:
        """Have the loop hear of signals, so that it need not wake up to look."""
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            self.loop.add_signal_handler(name, self._hear, name)
        self.loop.add_signal_handler(signal.SIGUSR1, self.log.reopen_files)
        self.loop.add_signal_handler(signal.SIGWINCH, lambda: None)

    def _hear(self, number: signal.Signals) -> None:
        """End: when what is under way is finished, or at once."""
        if number != signal.SIGTERM:
            self.cfg.worker_int(self)
            self._is_hasty = True
        self._end()

    def _end(self) -> None:
        self.alive, self.is_closing = False, True
        self._ended.set()

    async def _rest(self, seconds: float) -> None:
        """Wait for so long, or until told to end."""
        timer = self.loop.call_later(seconds, self._ended.set)
        await self._ended.wait()
        timer.cancel()
        self._ended.clear()

    async def _accept(self, listener: socket.socket, context: ssl.SSLContext | None) -> None:
        """Take connections in, a few at a time; near the limit the oldest without a request has to go."""
        listener.setblocking(False)  # noqa: FBT003  the standard library's own
        ready = asyncio.Event()
        common = base(_server(listener), "https" if context else "http", is_multiprocess=self.cfg.workers > 1)
        while self.alive:
            self.loop.add_reader(listener.fileno(), ready.set)
            await ready.wait()
            ready.clear()
            self.loop.remove_reader(listener.fileno())
            for _ in range(limits.ACCEPTED_AT_ONCE):
                if not self._has_room():
                    await asyncio.sleep(_SOON)
                    break
                try:
                    client, address = listener.accept()
                except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                    break
                except (
                    OSError
                ) as error:  # no files are left, or the network had an error of its own (accept(2))
                    log.warning(
                        "a connection could not be accepted: %s", errno.errorcode.get(error.errno or 0)
                    )
                    if error.errno in _NO_MORE:
                        self.crowd.make_room()
                        self.graves.empty()
                    await asyncio.sleep(_SOON)
                    break
                self._welcome(client, address, common, context)

    def _has_room(self) -> bool:
        return len(self.crowd) < self.crowd.size or self.crowd.make_room()

    def _welcome(
        self,
        client: socket.socket,
        address: Any,  # noqa: ANN401
        common: Environ,
        context: ssl.SSLContext | None,
    ) -> None:
        transport = SecureTransport(self.loop, context) if context else Transport(self.loop)
        named = (str(address[0]), str(address[1])) if isinstance(address, tuple) else ("", "")
        task = self.loop.create_task(
            self._host(client, transport, Connection(self, transport, common, named))
        )
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _host(self, client: socket.socket, transport: Transport, connection: Connection) -> None:
        client.setblocking(False)  # noqa: FBT003  same
        with contextlib.suppress(OSError):
            await self.loop.connect_accepted_socket(lambda: transport, client)
            await connection.serve()

    async def _watch(self) -> None:
        """Look for those whose time is over."""
        while True:
            await asyncio.sleep(limits.LOOK.total_seconds())
            now = time.monotonic()
            self.crowd.look(now)
            self.graves.look(now)

    async def _finish(self) -> None:
        """Wait for what is under way, `graceful_timeout` at most."""
        began = time.monotonic()
        until = began + (0 if self._is_hasty else self.cfg.graceful_timeout)
        while len(self.crowd) and time.monotonic() < until:
            if time.monotonic() > began + limits.LAST_BYTES.total_seconds():
                self.crowd.wake()
            self.notify()
            await self._rest(_SOON)
            if self._is_hasty:
                break
        if len(self.crowd):
            if not self._is_hasty:
                self.log.warning("Worker graceful timeout (pid:%s)", self.pid)
            self.crowd.expire()
            await asyncio.sleep(_SOON)


def _spare_files(connections: int) -> int:
    """Return how many sockets may stay open besides those in use."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = soft - connections - _OWN_FILES
    return limits.GRAVES if soft == resource.RLIM_INFINITY else min(max(spare, 0), limits.GRAVES)


def _server(listener: socket.socket) -> tuple[str, str]:
    name = listener.getsockname()
    return (str(name[0]), str(name[1])) if isinstance(name, tuple) else (str(name), "")
