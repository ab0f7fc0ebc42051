"""A real inbox in the process of a test: deliveries over HTTP's interface, a ledger in PostgreSQL, your handlers.

Nothing of it is a stand-in. The receiver is the WSGI application that a framework mounts, and the worker's own slot
makes the attempts, in a Django project by the executor of Django's worker, inside a Flask application where one is
given; both are closed and opened again where a test lets one of them die.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import ModuleType
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import psycopg
from werkzeug.exceptions import NotFound
from werkzeug.test import Client

from hookonce.jobs import handlers, stopping
from hookonce.jobs.attempts.attempt import MakeTransactions
from hookonce.jobs.capabilities import waits
from hookonce.jobs.drain import handlers_of
from hookonce.jobs.handlers import Handler, Registry
from hookonce.jobs.registration import import_handlers
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.providers.kit.crypto.secret_keys import wrong_secret
from hookonce.receiver.config.server_urls import with_schema
from hookonce.receiver.config.servers import ledger_schema
from hookonce.receiver.config.settings import Settings, load_settings
from hookonce.receiver.dev import generated_secrets
from hookonce.receiver.encryption import OFF
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.queries import event_details
from hookonce.receiver.ledger.queries.event_details import Detail
from hookonce.receiver.ledger.replay import events as event_replays
from hookonce.receiver.redis import approximate
from hookonce.receiver.source import Source
from hookonce.receiver.web.hooks import PREFIX, DeliveryEndpoint
from hookonce.receiver.web.mounted import FrontDoor
from hookonce.testing import crashes, events, waiting
from hookonce.testing.clock import Clock

__tracebackhide__ = True  # a test that fails shows the user's lines

PUBLIC_URL = "https://hooks.example.com"
_Result = TypeVar("_Result")
_MAX_ROUNDS, _MAX_TRIALS = 1000, 20
"""How often in a row time may pass and nothing come of it, and the same while a breaker is open."""
_NO_BATCH = 3600.0  # seconds, longer than any waits for others
_LONGEST_DRAIN = timedelta(minutes=1)
"""How long work goes on before something is taken to be due again for ever."""


@dataclass(frozen=True)
class Delivered:
    """The answer to a delivery, and its event in the ledger; `number` is None if it was not taken."""

    status: int
    answer: bytes
    source: str
    event_id: str
    type: str
    inbox: "Inbox" = field(repr=False)

    @property
    def number(self) -> int | None:
        """The ledger's id of the event."""
        return self.inbox.number(self.source, self.event_id)

    @property
    def detail(self) -> Detail:
        """Everything that the ledger knows of the event now. Raises: AssertionError if it has none."""
        return self.inbox.detail(self)


class FrameworkWorker(Protocol):
    """The worker of a framework: Django's (`hookonce.django.testing`), Flask's (`hookonce.flask.testing`)."""

    @property
    def transactions(self) -> MakeTransactions:
        """Transactions that handlers write in."""

    def require_fitting(self, handlers: Iterable[Handler]) -> None:
        """Raise `HandlerError` for a handler that this worker refuses."""

    def require_no_transaction(self) -> None:
        """Raise RuntimeError where the test has begun a transaction on the connection that handlers get."""

    def close(self) -> None:
        """Close the framework's connections."""


class Inbox:
    """The inbox that the fixture `inbox` gives. Its handlers: those of hookonce.toml, and what `@on` has decorated."""

    def __init__(
        self, database_url: str, redis_url: str, framework_worker: FrameworkWorker | None = None
    ) -> None:
        self.database_url = database_url
        """As psycopg takes it; your tables are in there."""
        self._framework_worker = framework_worker
        self._is_by_framework = framework_worker is not None
        self._claimer: SingleSlot | None = None
        ledger_url = with_schema(database_url, ledger_schema())
        self.clock = Clock(ledger_url, self._close_worker)  # it remembers until when nothing is due
        self._sources: dict[str, Source] = {}
        configured = load_settings(need_secrets=False)
        self._settings = replace(
            configured,
            database_url=ledger_url,
            redis_url=redis_url,
            window_redis_url="",
            sources=self._sources,
            keyring=OFF,
        )
        approximate.use(redis_url)
        self._configured = configured
        self._registry: Registry | None = None
        self._intake: Intake | None = None
        self._crash: crashes.Crash | None = None
        import_handlers(configured.handlers)  # a module registers them once, for all inboxes
        self._before = list(handlers.registry)

    # What a sender does

    def deliver(  # noqa: PLR0913  all but two by keyword
        self,
        source: str,
        type: str | None = None,  # noqa: A002  the word of the vocabulary
        *,
        set: Mapping[str, object] | None = None,  # noqa: A002  as `hookonce.testing.event` has it
        remove: Sequence[str] = (),
        event_id: str | None = None,
        provider: str | None = None,
        times: int = 1,
        forge: bool = False,
        work: bool = True,
    ) -> Delivered:
        """Send a sample as its sender would, signed, `times` times; then let the handlers work, unless told not to.

        Arguments are those of `hookonce.testing.event`; `forge` signs with a wrong secret. Returns what the last
        delivery was answered.
        """
        known = self._source(source, provider)
        now = self.clock.now()
        document = events.sample(known.provider, type, now, event_id, set or {}, remove)
        if not known.secrets and known.provider.needs_secret:
            raise ValueError(
                f"only {known.provider.name} can sign its deliveries; call the handler with event(…)"
            )
        secret = next(iter(known.secrets), "")
        secret = wrong_secret(secret) if forge else secret
        url = f"{PUBLIC_URL}/hooks/{source}"
        delivery = document.delivery(secret, now, url)
        decode = known.provider.decode
        sent = known.provider.events(decode(delivery, known.secrets) if decode else delivery)
        path = f"/hooks/{source}" + (f"/{delivery.path_secret}" if delivery.path_secret else "")
        query = urlsplit(delivery.url).query

        def post() -> tuple[int, bytes]:
            answer = self._client().open(
                path,
                query_string=query,
                method=delivery.method,
                headers=dict(delivery.headers),
                data=delivery.body,
            )
            return answer.status_code, answer.get_data()

        for _ in range(times):
            status, said = self._in_turn(post)
        if work:
            self.work()
        first = sent[0] if sent else None
        return Delivered(
            status,
            said,
            source,
            first.id if first else document.event_id,
            first.type if first else document.type,
            self,
        )

    # What a worker does

    def work(self) -> int:
        """Run what is due until nothing is, as a worker does when it is notified; return the number of attempts."""
        attempts = self._work()
        while self._asked(waiting.unpark):
            self._close_worker()  # it remembers until when nothing is due
            attempts += self._work()
        return attempts

    def settle(self) -> int:
        """Run until every event has ended, letting the pauses between attempts pass; return the number of attempts.

        Rates, places of limits, trials of a breaker and what a batch waits for pass as well. Raises: AssertionError
        if something waits for ever, and says for what.
        """
        attempts, idle = self.work(), 0
        left = self._asked(waiting.left)
        while left.events:
            if left.pause is None or idle >= (_MAX_TRIALS if left.is_broken else _MAX_ROUNDS):
                raise AssertionError(
                    f"after {attempts} {'attempt' if attempts == 1 else 'attempts'} {self._asked(waiting.story)}"
                )
            self.clock.advance(self._until_next(left.pause))
            attempts += self.work()
            before, left = left, self._asked(waiting.left)
            idle = idle + 1 if left[:2] == before[:2] else 0
        return attempts

    # What a person does

    def replay(self, delivered: Delivered, *, again: bool = False, work: bool = True) -> str:
        """Run an event again, as `hookonce replay` does, then let the handlers work; return what became of it.

        Runs that are done stay so, but with `again`. Raises: AssertionError if the ledger has no such event.
        """
        event = self.detail(delivered).event.id
        (found,) = self._asked(
            lambda ledger: [*event_replays.replay(ledger, [event], "hookonce.testing", again=again)]
        )
        self._close_worker()  # it remembers until when nothing is due
        if work:
            self.work()
        return found.fate

    # What there is

    def number(self, source: str, event_id: str) -> int | None:
        """Return the ledger's id of an event, None if it has none."""
        query = "SELECT id FROM hookonce.events WHERE source = %s AND event_id = %s"
        row = self._asked(lambda ledger: ledger.execute(query, [source, event_id]).fetchone())
        return int(row[0]) if row else None

    def detail(self, delivered: Delivered) -> Detail:
        """Return everything that the ledger knows of an event. Raises: AssertionError if it has none."""
        number = delivered.number
        if number is None:
            raise AssertionError(
                f"the ledger has no event {delivered.event_id} of {delivered.source}: its delivery was answered "
                f"{delivered.status} {delivered.answer.decode(errors='replace')}"
            )
        found = self._asked(lambda ledger: event_details.detail(ledger, number, self._settings.keyring))
        if found is None:
            raise AssertionError(f"event {number} has gone")
        return found.with_content()

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement in the inbox's database, and return its rows."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def use(self, *wanted: ModuleType | Callable[..., Any], framework: bool = True) -> None:
        """Have only these handlers: functions that `@on` has decorated, or modules of them.

        `framework=False` has `hookonce worker` run them, not Django's worker or Flask's: handlers that these refuse, or
        that write by themselves.
        """
        names = {each.__name__ for each in wanted if isinstance(each, ModuleType)}
        functions = [each for each in wanted if not isinstance(each, ModuleType)]
        chosen = [
            each
            for each in self._all_handlers()
            if each.function in functions or getattr(each.function, "__module__", None) in names
        ]
        if not chosen:
            raise ValueError(f"none of {', '.join(map(str, wanted))} is decorated with @on")
        self._close_worker()
        self._is_by_framework = framework and self._framework_worker is not None
        self._registry = _registry_of(chosen)

    def close(self) -> None:
        """Close every connection, and forget the handlers that the test has decorated."""
        self._close_processes()
        handlers.registry.keep(self._before)
        stopping.stopping.clear()
        stopping.hurrying.clear()

    @contextmanager
    def crashing(self, crash: crashes.Crash) -> Iterator[None]:
        """Have what is done within the block die where `crash` says; `hookonce.testing.crash_at` is for tests."""
        self._crash = crash
        try:
            yield
        finally:
            self._crash = None

    def _in_turn(self, act: Callable[[], _Result]) -> _Result:
        """Do something as receiver or worker, which may have to die of it in a process of its own."""
        if self._crash is None:
            return act()
        self._close_processes()  # no connection may be shared with the process that dies
        return self._crash.run(act, self._close_processes)

    def _source(self, name: str, provider: str | None) -> Source:
        """Return a source of that name, with a secret that we know."""
        if name not in self._sources:
            sender = events.provider_of(name, provider)
            known = self._configured.sources.get(name) or Source(name, sender, ())
            secret = generated_secrets.made_up(sender)
            secrets = (secret,) if secret else ()
            self._sources[name] = replace(known, secrets=secrets, public_url=PUBLIC_URL, quarantine=None)
            self._close_processes()
        return self._sources[name]

    def _client(self) -> Client:
        if self._intake is None:
            self._intake = Intake(self._settings, self.clock.now)
        return Client(FrontDoor({PREFIX: DeliveryEndpoint(self._settings, self._intake)}, NotFound()))

    def _worker(self) -> SingleSlot:
        framework = self._framework_worker if self._is_by_framework else None
        if framework is not None:
            framework.require_no_transaction()
        if self._claimer is None:
            registry = self._registry or _registry_of(self._all_handlers())
            if framework is None:
                self._claimer = SingleSlot(self._settings, registry)
            else:
                framework.require_fitting(registry)
                self._claimer = SingleSlot(self._settings, registry, framework.transactions)
        return self._claimer

    def _all_handlers(self) -> Collection[Handler]:
        return list(handlers_of(self._for_handlers()))

    def _for_handlers(self) -> Settings:
        """Return the settings in which every source is known that a handler may name."""
        return replace(self._settings, sources={**self._configured.sources, **self._sources})

    def _work(self) -> int:
        return self._in_turn(self._drain)

    def _drain(self) -> int:
        worker, attempts = self._worker(), 0
        # A worker stops after some seconds; and what its first look learns of open breakers, the second acts on.
        until = time.monotonic() + _LONGEST_DRAIN.total_seconds()
        while count := worker.run_due() or worker.run_due():
            attempts += count
            if time.monotonic() > until:
                raise AssertionError(
                    f"after {attempts} attempts something is due still; does a handler put off its run by 0 s?"
                )
        return attempts

    def _asked(self, what: Callable[[psycopg.Connection], _Result]) -> _Result:
        """Return what the ledger says."""
        with connections.connect(self._settings.database_url) as connection:
            return what(connection)

    def _until_next(self, pause: timedelta) -> timedelta:
        """Return how long to let pass until something may go on; what is due already may wait for its batch."""
        if pause <= timedelta():
            ripe_in = self._worker().longest_wait(_NO_BATCH)
            pause = timedelta(seconds=ripe_in) if ripe_in < _NO_BATCH else timedelta()
        return pause + timedelta(milliseconds=1)

    def _close_processes(self) -> None:
        if self._intake is not None:
            self._intake.close()
            self._intake = None
        self._close_worker()
        if self._framework_worker is not None:
            self._framework_worker.close()

    def _close_worker(self) -> None:
        if self._claimer is not None:
            self._claimer.close()
            self._claimer = None


def _registry_of(found: Collection[Handler]) -> Registry:
    registry = Registry()
    for each in found:
        registry.add(each)
    waits.register(registry)
    return registry
