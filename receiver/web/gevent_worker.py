"""gunicorn's worker for an open network: `receiver.web.http` reads and answers, gevent switches between clients.

gunicorn stays what starts, watches, replaces and stops the processes. Any other worker class of it serves the same
application, without the fairness and the bounds of this one (docs/explanation/http.md).

Imported before gevent patches the process: nothing here may import psycopg.
"""

import errno
import gc
import resource
import time
from _socket import socket as plain_socket
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import gevent
from gevent import monkey
from gunicorn import sock as gunicorn_sock
from gunicorn.errors import AppImportError
from gunicorn.workers import ggevent

from hookonce.receiver.logs import limited
from hookonce.receiver.web.http import limits
from hookonce.receiver.web.http.answer import Answer
from hookonce.receiver.web.http.connection import Application, Connection
from hookonce.receiver.web.http.crowd import Crowd, Graves, Pace
from hookonce.receiver.web.http.environ import Environ, base
from hookonce.receiver.web.http.head import Head
from hookonce.receiver.web.http.settings import require_honoured
from hookonce.receiver.web.http.transport import SecureTransport, Transport
from hookonce.receiver.web.http.turns import Turns

log = limited(__name__)

COLLECTOR_THRESHOLDS = (50_000, 20, 100)
"""When Python looks for cycles among its objects: after so many new ones, and how seldom among older ones."""
_BEAT = 1.0  # seconds between two signs of life to gunicorn
_SOON = 0.05  # seconds
_OWN_FILES = 500  # open files that are no client's
_NO_MORE = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


def calm_collector() -> None:
    """Keep the collector of cycles from going through what lives as long as the process, and from doing it often.

    Unlike the count of references, which frees nearly all that a request leaves, it walks over objects that are in
    use. By default it does so after every 700 new ones: a parsed megabyte of `[[],[],…]` is walked over dozens of
    times while it grows, which is nine tenths of its cost, and anybody may send one.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


class GeventWorker(ggevent.GeventWorker):  # type: ignore[misc]  # gunicorn has no types
    """The worker class of `receiver.web.gunicorn_conf`; what its connections share (`connection.House`)."""

    application: Application
    turns: Turns
    crowd: Crowd
    graves: Graves
    refusals: Pace
    keepalive: float
    head_limits: tuple[int, int, int]
    alive: bool
    sockets: list[Any]

    @classmethod
    def check_config(cls, cfg: Any, _log: Any) -> None:  # noqa: ANN401
        """Refuse settings that would be passed over (gunicorn asks before it forks)."""
        require_honoured(cfg)

    @property
    def is_closing(self) -> bool:
        """Whether no more requests are to come."""
        return not self.alive

    def patch(self) -> None:  # noqa: D102
        monkey.patch_all()
        self.sockets = [plain_socket(fileno=each.sock.detach()) for each in self.sockets]

    def load_wsgi(self) -> None:
        """Load the application; what is wrong with its configuration is told as it is, and not as a traceback."""
        try:
            super().load_wsgi()
        except Exception as error:
            if not hasattr(error, "mistakes"):  # a `ConfigError`, whose module would import psycopg unpatched
                raise
            raise AppImportError(f"hookonce: {error}") from None
        calm_collector()

    def run(self) -> None:
        """Accept and answer until told to stop, then finish what is under way."""
        cfg = self.cfg
        hub = gevent.get_hub()
        self.application, self.turns, self.crowd = self.wsgi, Turns(hub), Crowd(cfg.worker_connections)
        self.graves = Graves(_spare_files(cfg.worker_connections), limits.GRAVE_TIME)
        self.refusals = Pace(limits.REFUSALS_A_SECOND, limits.REFUSALS_AT_ONCE, limits.LONGEST_REFUSAL)
        self.keepalive = float(cfg.keepalive)
        self.head_limits = (
            cfg.limit_request_line or limits.HEAD_SIZE,
            cfg.limit_request_fields or limits.HEAD_SIZE,
            cfg.limit_request_field_size or limits.HEAD_SIZE,
        )
        self._is_logged = bool(cfg.statsd_host) or getattr(self.log, "access_log_enabled", True)
        context = gunicorn_sock.ssl_context(cfg) if cfg.is_ssl else None
        acceptors = [gevent.spawn(self._accept, each, hub, context) for each in self.sockets]
        watch = gevent.spawn(self._watch)
        while self.alive:
            self.notify()
            gevent.sleep(_BEAT)
        gevent.killall(acceptors)
        for each in self.sockets:
            each.close()
        self._finish()
        watch.kill()
        self.graves.empty()

    def count_request(self) -> None:
        """Note that a request came; after `max_requests` the worker ends, and gunicorn starts another."""
        self.nr += 1
        if self.nr >= self.max_requests and self.alive:
            self.log.info("Autorestarting worker after current request.")
            self.alive = False

    def note_access(self, head: Head, answer: Answer, size: int, environ: Environ, began: float) -> None:
        """Write an access log, if one is asked for."""
        if not self._is_logged:
            return
        response = SimpleNamespace(status=answer.status, headers=answer.headers, sent=size)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers]
        request = SimpleNamespace(headers=headers)
        self.log.access(response, request, environ, timedelta(seconds=time.time() - began))

    def _accept(self, listener: plain_socket, hub: Any, context: Any) -> None:  # noqa: ANN401
        """Take connections in, a few at a time; near the limit the oldest without a request has to go."""
        listener.setblocking(False)  # noqa: FBT003  the standard library's own
        watcher = hub.loop.io(listener.fileno(), 1)
        common = base(_server(listener), "https" if context else "http", is_multiprocess=self.cfg.workers > 1)
        while self.alive:
            hub.wait(watcher)
            for _ in range(limits.ACCEPTED_AT_ONCE):
                if not self._has_room():
                    gevent.sleep(_SOON)
                    break
                try:
                    handle, address = listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001  accept() makes gevent's
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
                    gevent.sleep(_SOON)
                    break
                self._welcome(handle, address, common, hub, context)

    def _has_room(self) -> bool:
        return len(self.crowd) < self.crowd.size or self.crowd.make_room()

    def _welcome(self, handle: int, address: Any, common: Environ, hub: Any, context: Any) -> None:  # noqa: ANN401
        client = plain_socket(fileno=handle)
        client.setblocking(False)  # noqa: FBT003  same
        transport = SecureTransport(client, hub, context) if context else Transport(client, hub)
        named = (str(address[0]), str(address[1])) if isinstance(address, tuple) else ("", "")
        gevent.spawn(Connection(self, transport, common, named).serve)

    def _watch(self) -> None:
        """Look for those whose time is over."""
        while True:
            gevent.sleep(limits.LOOK.total_seconds())
            now = time.monotonic()
            self.crowd.look(now)
            self.graves.look(now)

    def _finish(self) -> None:
        """Wait for what is under way, `graceful_timeout` at most."""
        began = time.monotonic()
        until = began + self.cfg.graceful_timeout
        while len(self.crowd) and time.monotonic() < until:
            if time.monotonic() > began + limits.LAST_BYTES.total_seconds():
                self.crowd.wake()
            self.notify()
            gevent.sleep(_SOON)
        if len(self.crowd):
            self.log.warning("Worker graceful timeout (pid:%s)", self.pid)
            self.crowd.expire()
            gevent.sleep(_SOON)


def _spare_files(connections: int) -> int:
    """Return how many sockets may stay open besides those in use."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = soft - connections - _OWN_FILES
    return limits.GRAVES if soft == resource.RLIM_INFINITY else min(max(spare, 0), limits.GRAVES)


def _server(listener: plain_socket) -> tuple[str, str]:
    name = listener.getsockname()
    return (str(name[0]), str(name[1])) if isinstance(name, tuple) else (str(name), "")
