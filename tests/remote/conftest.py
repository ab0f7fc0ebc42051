import contextlib
import threading
from dataclasses import dataclass

import pytest
from werkzeug.serving import WSGIRequestHandler, make_server

from hookonce.receiver.ledger.access import api_tokens
from tests.api.conftest import open_inbox


@dataclass
class Served:
    """The API over a ledger of the test's own, on a port of this machine."""

    inbox: object
    url: str

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])

    def token(self, name, *scopes):
        return api_tokens.create(
            self.inbox.connection, name, [api_tokens.Scope(each) for each in scopes], None, "a test"
        )


class Silent(WSGIRequestHandler):
    """Logs nothing: what a test before has logged to is closed by now."""

    def log(self, type, message, *args):  # noqa: A002  werkzeug's
        pass


@contextlib.contextmanager
def serving(inbox, port=0):
    server = make_server("127.0.0.1", port, inbox.app, threaded=True, request_handler=Silent)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Served(inbox, f"http://127.0.0.1:{server.port}")
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def served(database_url, redis_url):
    with open_inbox(database_url, redis_url) as inbox, serving(inbox) as made:
        yield made


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user's folders."""
    for name in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    return tmp_path
