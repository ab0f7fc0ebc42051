"""An inbox with something of everything, and an agent that asks it by the Model Context Protocol."""

import asyncio
import json
import re
import threading
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.util import find_spec

import pytest
from werkzeug.serving import WSGIRequestHandler, make_server

from hookonce.receiver.desk.actions import ACTIONS
from hookonce.receiver.ledger import alerts, pauses, rejected
from hookonce.receiver.ledger.access import api_tokens
from hookonce.receiver.ledger.results import LogLine, lines_as_json
from hookonce.receiver.ledger.store import store
from tests.api.conftest import open_inbox
from tests.support import desk
from tests.support.new_event import new_event
from tests.support.outcomes import fail, put_into_state

if find_spec("mcp") is None:
    pytest.skip("needs the extra mcp", allow_module_level=True)

MARKED = re.compile(r"\n<<data (?P<mark>[0-9a-f]{16})>>\n(?P<said>.*)\n<<end (?P=mark)>>\Z", re.DOTALL)


@dataclass(frozen=True)
class Told:
    """An answer taken apart as an agent would: what the inbox knows, and what others said."""

    text: str
    known: object
    said: object
    outside: str


@asynccontextmanager
async def connected(server):
    """A client of the protocol; its library is imported when one is wanted: it takes a second."""
    from mcp.client import Client  # noqa: PLC0415

    async with Client(server) as client:
        yield client


def told(text):
    found = MARKED.search(text)
    if not found:
        return Told(text, json.loads(text), None, text)
    known, _, note = text[: found.start()].partition("\n\n")
    return Told(text, json.loads(known), json.loads(found["said"]), known + note)


@dataclass
class Agent:
    """A client in this process; `asked` holds the requests of the API that its calls became."""

    url: str
    token: str
    read_only: bool = False
    asked: list = field(default_factory=list)

    def __post_init__(self):
        from hookonce.receiver.api.mcp.server import server  # noqa: PLC0415  as above
        from hookonce.receiver.api.remote_desk import RemoteDesk  # noqa: PLC0415
        from hookonce.receiver.remote.client import Client  # noqa: PLC0415
        from hookonce.receiver.remote.profiles import Profile  # noqa: PLC0415

        asked = self.asked

        class Recording(Client):
            def _exchange(self, method, path, options):
                asked.append((method, path, options.get("params"), options.get("json")))
                return super()._exchange(method, path, options)

        def desk_of(_, key):
            return RemoteDesk(Recording(Profile("", self.url, self.token)), key)

        self.server = server(desk_of, read_only=self.read_only)

    def tools(self):
        return asyncio.run(self._tools())

    @staticmethod
    def way(name, arguments):
        """The tool by which an action is asked, and its arguments there; a tool by its own name stays."""
        if name not in ACTIONS:
            return name, arguments
        return "plan" if ACTIONS[name].changes else "ask", {"action": name, "arguments": arguments}

    async def _tools(self):
        async with connected(self.server) as client:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

    def call(self, tool, /, **arguments):
        """Give what a tool tells, as text and as data. Raises: `AssertionError` with its refusal."""
        answer = asyncio.run(self._call(*self.way(tool, arguments)))
        text = "".join(part.text for part in answer.content)
        assert not answer.is_error, text
        typed = dict(answer.structured_content)
        said = typed.pop("said")
        found = told(text)
        assert typed == found.known
        assert (said is None) == (found.said is None)
        return found

    def plan(self, tool, /, **arguments):
        """Give the confirmation of what a tool would do."""
        return self.call(tool, **arguments).known["confirmation"]

    def look(self, uri):
        """Give what a resource tells."""

        async def read():
            async with connected(self.server) as client:
                return (await client.read_resource(uri)).contents[0].text

        return told(asyncio.run(read()))

    def refusal(self, tool, /, **arguments):
        answer = asyncio.run(self._call(*self.way(tool, arguments)))
        assert answer.is_error
        return "".join(part.text for part in answer.content)

    async def _call(self, name, arguments):
        async with connected(self.server) as client:
            return await client.call_tool(name, arguments)


class _Quiet(WSGIRequestHandler):
    def log(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def ledgers(fresh_database, fresh_redis):
    """Make seeded inboxes that answer on a port of their own: `ledgers(words)` → (inbox, url)."""
    with ExitStack() as stack:

        def made(words=None):
            inbox = stack.enter_context(
                open_inbox(stack.enter_context(fresh_database()), stack.enter_context(fresh_redis()))
            )
            seed(inbox, words or (lambda text: text))
            http = make_server("127.0.0.1", 0, inbox.app, threaded=True, request_handler=_Quiet)
            thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            stack.callback(thread.join)
            stack.callback(http.shutdown)
            return inbox, f"http://127.0.0.1:{http.port}"

        yield made


@pytest.fixture(scope="module")
def ledger(ledgers):
    return ledgers()


@pytest.fixture
def agent(ledger):
    """An agent whose token may read and replay."""
    inbox, url = ledger
    return Agent(url, inbox.tokens["agent"])


def seed(inbox, words):
    """Fill a ledger; whatever a sender or an exception says goes through `words` first.

    The events by their ids: 1 to 5 done, 6 to 8 dead of a customer that is unknown, 9 and 10 dead of time,
    11 and 12 ignored, 13 held, 14 waiting, 15 done.
    """
    scopes = [api_tokens.Scope.READ, api_tokens.Scope.BODIES, api_tokens.Scope.REPLAY]
    inbox.tokens["agent"] = api_tokens.create(inbox.connection, "agent", scopes, None, "a test")
    seed_events(Seeding(inbox.connection, words))
    seed_trouble(inbox.connection, words)


@dataclass
class Seeding:
    """Stores events and what became of them; all that is said goes through `words`."""

    connection: object
    words: object

    def deliver(self, kind, *ids, **changes):
        events = [
            new_event(
                self.words(each), self.words(f'{{"id": "{each}"}}').encode(), type=self.words(kind), **changes
            )
            for each in ids
        ]
        rows = store(self.connection, events)
        return [rows[event.key].id for event in events]

    def run(self, events, handler, status, error=None, attempts=1):
        lines = lines_as_json([LogLine(at=3, level="info", logger="shop", text=self.words("crediting"))], 0)
        for event in events:
            put_into_state(self.connection, event, runs=[(handler, status, attempts)])
            if error:
                fail(self.connection, event, self.words(error), handler=handler, attempt=attempts)
                self.connection.execute(
                    "INSERT INTO hookonce.run_logs (event, handler, cycle, attempt, received_at, lines) "
                    "SELECT id, %s, 1, %s, received_at, %s FROM hookonce.events WHERE id = %s",
                    [handler, attempts, lines, event],
                )


def seed_events(seeding):
    deliver, run = seeding.deliver, seeding.run
    account = seeding.words("acct_1")
    run(deliver("invoice.paid", *(f"evt_{n}" for n in range(1, 6)), account=account), "shop.credit", "done")
    unknown, late = "ValueError: no such customer", "TimeoutError: took 31 s"
    run(deliver("invoice.payment_failed", "evt_6", "evt_7", "evt_8"), "shop.credit", "dead", unknown, 10)
    run(deliver("charge.refunded", "evt_9", "evt_10", account=account), "books.refund", "dead", late, 10)
    for event in deliver("customer.created", "evt_11", "evt_12"):
        put_into_state(seeding.connection, event, "ignored")
    put_into_state(seeding.connection, *deliver("invoice.paid", "evt_13"), "held")
    run(deliver("invoice.paid", "evt_14"), "shop.credit", "waiting", "KeyError: 'total'", 2)
    run(deliver("push", "evt_15", source="github", provider="github"), "ci.build", "done")


def seed_trouble(connection, words):
    """Have a conflict, rejected deliveries, a pause, a breaker, a batch in halves and an alert."""
    store(connection, [new_event(words("evt_1"), b'{"id": "another body"}', type=words("invoice.paid"))])
    refused = [("stripe", "bad_signature")] * 4 + [("github", "stale")]
    rejected.add_rejections(
        connection,
        [
            rejected.Sample(
                datetime.now(UTC), source, reason, words("v1 does not match"), "{}", words("{").encode()
            )
            for source, reason in refused
        ],
        {("stripe", "bad_signature"): 4, ("github", "stale"): 1},
    )
    pauses.pause(connection, "handler", "books.refund", "ann")
    desk.fail_in_a_row(connection, "shop.mail", 2, limit=5, error=words("OSError: no route"))
    connection.execute(
        "INSERT INTO hookonce.batch_counts VALUES ('shop.track', 0, 0, 1, %s)",
        [words("ValueError: no such place")],
    )
    connection.execute(
        "INSERT INTO hookonce.queue (event, received_at, source, type, handler, due_at, waits) "
        "VALUES (0, now(), 'stripe', 'track', 'shop.track', now(), 'batch:0002:0')"
    )
    alerts.raise_alert(connection, "source_silent", "github", words("at least 40 deliveries are missing"))
