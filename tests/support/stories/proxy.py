"""Stands between hookonce and a server, and cuts the connection when it sees one reply.

The request has then been carried out and nobody was told: what a network does when it fails at the worst
moment.
"""

import contextlib
import selectors
import socket
import threading
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from redis.connection import parse_url

ENOUGH = 10.0


class Proxy:
    """Listens on a unix socket at `path` for whoever wants the server: a path, or host and port."""

    def __init__(self, server, path):
        self._server = server
        self.path = Path(path)
        self._doomed = ()
        self._after = b""
        self.swallowed = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._sockets = []
        self._threads = []
        self._begin(self._accept)

    def swallow(self, *spellings, after=b""):
        """Cut the connection that carries the next reply with any of these bytes in it, and pass it not on.

        The next one once a reply had those of `after` in it, if any are given.
        """
        self.swallowed.clear()
        self._doomed, self._after = spellings, after

    def close(self):
        """Cut every connection, and end with it."""
        hang_up(self._listener)
        self._threads[0].join(ENOUGH)  # from here on nobody new is let in
        for each in self._sockets:
            hang_up(each)
        for thread in self._threads:
            thread.join(ENOUGH)
        self._listener.close()
        self.path.unlink()

    def _begin(self, work, *args):
        self._threads.append(threading.Thread(target=work, args=args, daemon=True))
        self._threads[-1].start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(client)
            self._begin(self._pass_on, client)

    def _pass_on(self, client):
        family = socket.AF_UNIX if isinstance(self._server, str) else socket.AF_INET
        with client, socket.socket(family) as server, contextlib.suppress(OSError):
            server.connect(self._server)
            while self._pass_one(client, server):
                pass

    def _pass_one(self, client, server):
        with selectors.DefaultSelector() as ready:
            ready.register(client, selectors.EVENT_READ, server)
            ready.register(server, selectors.EVENT_READ, client)
            for key, _ in ready.select():
                data = key.fileobj.recv(65536)
                if key.fileobj is server and self._is_doomed(data):
                    self._doomed = ()
                    self.swallowed.set()
                    return False
                if not data:
                    return False
                key.data.sendall(data)
        return True

    def _is_doomed(self, reply):
        if self._after in reply:
            self._after = b""
        return not self._after and any(each in reply for each in self._doomed)


def hang_up(connection):
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def before_postgres(database_url, directory):
    """A proxy before the ledger, and the URL that goes through it."""
    told = conninfo_to_dict(database_url)
    host, port = told.get("host", "localhost"), told.get("port", 5432)
    server = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, int(port))
    proxy = Proxy(server, Path(directory) / ".s.PGSQL.5432")
    try:
        yield proxy, make_conninfo(database_url, host=str(directory), port=5432)
    finally:
        proxy.close()


@contextlib.contextmanager
def before_redis(redis_url, directory):
    """A proxy before Redis, and the URL that goes through it."""
    told = parse_url(redis_url)
    proxy = Proxy(told.get("path") or (told["host"], told.get("port", 6379)), Path(directory) / "redis.sock")
    try:
        yield proxy, f"unix://{proxy.path}?db={told.get('db', 0)}"
    finally:
        proxy.close()
