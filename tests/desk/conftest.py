"""One inbox, asked by a command on its machine, by one elsewhere (`--at`), the API, an agent's tool and a page."""

import hashlib
import html
import json
import re
import threading
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from werkzeug.serving import make_server

from hookonce.providers.kit.registry import load
from hookonce.receiver.api.remote_desk import RemoteDesk
from hookonce.receiver.api.routes import BY_NAME
from hookonce.receiver.app import create_app
from hookonce.receiver.cli import main
from hookonce.receiver.config.settings import Settings, load_settings
from hookonce.receiver.desk.actions import ACTIONS
from hookonce.receiver.desk.forms import read
from hookonce.receiver.desk.refusals import Refused
from hookonce.receiver.desk.registry import Desk, Octets
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.ledger.access import api_tokens
from hookonce.receiver.ledger.access.api_tokens import Token
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.remote import profiles
from hookonce.receiver.remote.client import Client
from hookonce.receiver.remote.profiles import Profile
from hookonce.receiver.source import Source
from tests.api.conftest import Inbox
from tests.remote.conftest import Silent

CONFIGURATION = """
[receiver]
encryption_keys = ["env:KEY"]
[admin]
token = "env:ADMIN"
[sources.stripe]
secrets = ["env:STRIPE_SECRET"]
tests = true
[sources.shopify]
secrets = ["env:STRIPE_SECRET"]
[sources.github]
secrets = ["env:STRIPE_SECRET"]
repeats = "hold"
"""
WAYS = ("command", "at", "api", "tool", "page")


def agents_tools():
    """Return the tools of one process."""
    pytest.importorskip("mcp")
    from hookonce.receiver.api.mcp.tools import Tools  # noqa: PLC0415  needs the extra

    return Tools(read_only=False)


class Everywhere:
    """Asks the same thing in each way; gives what is told, and whether that is a refusal."""

    def __init__(self, app, url, token, connection):
        self.app, self.connection, self.run = app, connection, None
        self.headers = {"Authorization": f"Bearer {token}"}
        self.desk = RemoteDesk(Client(Profile("", url, token)))
        self.browser = app.test_client()
        form = re.search('name="form" value="([^"]+)"', self.browser.get("/admin/sign-in").text)[1]
        self.browser.post("/admin/sign-in", data={"form": form, "token": "token-of-the-tests-only"})

    def ask(self, way, action, arguments, command):
        """Give a document, or of a page its facts by name; or the text of a refusal."""
        return {
            "command": lambda: self._command(command),
            "at": lambda: self._command(["--at", "there", *command]),
            "api": lambda: self._api(action, arguments),
            "tool": lambda: self._tool(action, arguments),
            "page": lambda: self._page(action, arguments),
        }[way]()

    def _command(self, command):
        ran = self.run(*command)
        if ran.code:
            return ran.err.removeprefix("hookonce: ").rstrip("\n")
        return ran.documents[0] if len(ran.documents) == 1 else ran.documents

    def _api(self, action, arguments):
        operation, left = BY_NAME[action], dict(arguments)
        named = {name: quote(str(left.pop(name)), safe="") for name in re.findall(r"{(\w+)}", operation.path)}
        path = f"/api/v1{operation.path.format_map(named)}"
        options = {"query_string": left} if operation.method == "GET" else {"json": left}
        answer = self.app.test_client(use_cookies=False).open(
            path, method=operation.method, headers=self.headers, **options
        )
        document = answer.get_json()
        return document if answer.status_code < 400 else document["detail"]

    def _tool(self, action, arguments):
        try:
            way = "plan" if ACTIONS[action].changes else "ask"
            asked = {"action": action, "arguments": arguments}
            told = agents_tools().call(lambda _: self.desk, way, asked)
        except Refused as error:
            return str(error)
        return told.known.get("plan") or told.known

    def _page(self, action, arguments):
        answer = self.page(action, arguments)
        if answer.status_code >= 400:
            return refusal_of(answer)
        facts = re.findall("<dt>([^<]+)</dt><dd>(.*?)</dd>", answer.text)
        return {name.replace(" ", "_"): html.unescape(value) for name, value in facts}

    def page(self, action, arguments):
        """Ask an operation by its page, or plan it there if it changes something."""
        path, typed = f"/admin/operations/{action}", dict(fields_of(arguments))
        if not ACTIONS[action].changes:
            return self.browser.get(f"{path}?{urlencode({**typed, 'asked': 'yes'})}")
        token = re.search('name="form_token" value="([^"]+)"', self.browser.get(path).text)[1]
        return self.browser.post(path, data={**typed, "form_token": token})


def fields_of(arguments, before=""):
    """Yield the fields of a form, as a browser sends what is typed into them."""
    for name, value in arguments.items():
        if isinstance(value, dict):
            yield from fields_of(value, f"{name}.")
        elif value is not False:
            yield before + name, "\n".join(value) if isinstance(value, list) else value


def refusal_of(answer):
    """Give the text of a page that refuses."""
    return html.unescape(re.search("<h1>.*</h1>\n  <p>(.*)</p>", answer.text)[1]).removesuffix(".")


@pytest.fixture(scope="module")
def inbox(tmp_path_factory, fresh_database, fresh_redis):
    """An inbox that the tests of a module share, with the environment of its machine."""
    scrypt, place = hashlib.scrypt, tmp_path_factory.mktemp("inbox")
    (place / "hookonce.toml").write_text(CONFIGURATION)
    with fresh_database() as database_url, fresh_redis() as redis_url, pytest.MonkeyPatch.context() as patch:
        environment = {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "HOOKONCE_CONFIG": str(place / "hookonce.toml"),
            "ADMIN": "token-of-the-tests-only",
            "STRIPE_SECRET": "whsec_secret_of_the_tests",
            "KEY": bytes(range(32)).hex(),
            "XDG_CONFIG_HOME": str(place / "config"),
        }
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(hashlib, "scrypt", lambda *args, **options: scrypt(*args, **{**options, "n": 2}))
        patch.chdir(place)
        app = create_app(load_settings())
        with served(app) as url, connections.connect(database_url) as connection:
            token = api_tokens.create(connection, "all", list(api_tokens.Scope), None, "a test")
            profiles.save(Profile("there", url, token))
            yield Everywhere(app, url, token, connection)
        app.extensions["hookonce"].close()


@contextmanager
def served(app):
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Silent)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def everywhere(inbox, monkeypatch, capfd):
    """The same, for a test that runs commands as the shell does."""

    def run(*arguments):
        capfd.readouterr()
        monkeypatch.setattr("sys.argv", ["hookonce", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        documents = [json.loads(line) for line in out.splitlines() if line.startswith('{"')]
        return SimpleNamespace(code=int(ended.value.code or 0), out=out, err=err, documents=documents)

    inbox.run = run
    return inbox


@dataclass
class Told:
    """An answer as JSON has it, or of a body its bytes; of a refusal its kind, code and text."""

    kind: str
    json: Any = None
    data: bytes = b""
    name: str = ""


@dataclass
class Here(Inbox):
    """The desk itself, asked under tokens of every scope."""

    intake: Any = None
    notified: bool = False
    confirm: Any = None

    def ask(self, action, /, *, scope="admin", **arguments):
        """Give the answer to an action, or its refusal."""
        return self._told(lambda desk, models: ACTIONS[action](desk, **models), action, scope, arguments)

    def plan(self, action, /, *, scope="admin", **arguments):
        """Give what a plan of an action shows, and do it then by `confirm`; or its refusal."""

        def planned(desk, models):
            plan = ACTIONS[action].plan(desk, **models)
            self.confirm = lambda: self._told(
                lambda desk, _: ACTIONS[action](desk, **plan.models), action, scope, arguments
            )
            return plan.shown

        return self._told(planned, action, scope, arguments)

    def _told(self, ask, action, scope, arguments):
        token = Token(
            id=1,
            name=scope,
            scopes=scope.split("+"),
            created_at=datetime.now(UTC),
            expires_at=None,
            is_expired=False,
        )
        desk = Desk(self.settings, self.connection, f"{scope} (token)", token, self.intake)
        try:
            answer = ask(desk, read(ACTIONS[action], arguments))
        except Refused as error:
            return Told(type(error).__name__, {"code": error.code, "detail": str(error)})
        self.notified = desk.notifies_workers
        if isinstance(answer, Octets):
            return Told("done", data=answer.body, name=answer.name)
        return Told("done", answer and answer.model_dump(mode="json"))


@contextmanager
def at_the_desk(database_url, redis_url):
    sources = {"stripe": Source("stripe", load("stripe"), ("whsec_of_the_tests", "whsec_older"))}
    settings = Settings(database_url, redis_url, sources, desk="door")
    with closing(Intake(settings)) as intake, connections.connect(database_url) as connection:
        yield Here(None, connection, settings, intake=intake)


@pytest.fixture
def here(database_url, redis_url):
    """The desk on a ledger of the test's own."""
    with at_the_desk(database_url, redis_url) as made:
        yield made


@pytest.fixture(scope="module")
def calm_desk(fresh_database, fresh_redis):
    """The desk on a ledger that the tests of a module share, and leave as it is."""
    with (
        fresh_database() as database_url,
        fresh_redis() as redis_url,
        at_the_desk(database_url, redis_url) as made,
    ):
        yield made
