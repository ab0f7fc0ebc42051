"""Waits of a handler for another event, and the handlers of our own that note which have come.

    scan = event.wait("ci", sha, timeout=timedelta(days=3))

A wait is committed on a connection of its own, before the attempt ends, and so is its answer: later attempts get the
same one. An attempt that waits ends uncharged and is put off to the end of the wait. The handler that notes an arrival
has the run be due earlier; where that run is under way, its end may yet put it off, so the arrival is noted again.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final

import psycopg
from psycopg.pq import TransactionStatus

from hookonce.jobs.event import NO_WAITS, WAITS, Capability, Postponed, ReceivedEvent, WaitError
from hookonce.jobs.handlers import DEFAULT_BACKOFF, Handler, Registry, RetryLater
from hookonce.jobs.order import Call, EntitiesOf
from hookonce.jobs.provider_lookup import data_of
from hookonce.providers import Delivery
from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.reading import json_paths
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.failpoints import reach
from hookonce.receiver.idempotency.postgresql import Connections
from hookonce.receiver.idempotency.steps import LedgerAway
from hookonce.receiver.ledger import waits
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.replay import rereading
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import LeaseLost
from hookonce.receiver.ledger.runs.run_limits import BatchSize
from hookonce.receiver.ledger.waits import LONGEST, Awaited

log = logging.getLogger(__name__)

LONGEST_VALUE: Final = 1000
"""Bytes of a value that is waited for."""
AGAIN: Final = timedelta(seconds=0.2)
"""When an arrival is noted again for which a run waits that is under way."""
AT_ONCE: Final = 500
"""Arrivals that are noted in one transaction."""
ATTEMPTS: Final = 14
LOOKS: Final = 100
"""Calls of a handler that are looked at for writes before a wait."""
_EXAMPLE: Final = 'awaits={"ci": ("github", "check_suite", "$.check_suite.head_sha")}'

ProviderOf = Callable[[str, str], Provider | None]
_told: set[tuple[str, ...]] = set()
"""The subjects of warnings that were logged in this process."""


class Waits(Postponed):
    """Ends an attempt whose event waits for another one."""

    def __init__(self, name: str, delay: timedelta) -> None:
        self.delay = delay
        super().__init__(f"waits for '{name}'")


class EventWaits(Capability):
    """The waits of one attempt; for any number of threads or tasks."""

    def __init__(
        self,
        connect: Connections,
        run: ClaimedRun,
        handler: Handler,
        keyring: Keyring,
        provider_of: ProviderOf,
    ) -> None:
        self._connect = connect
        self._run = run
        self._handler = handler
        self._keyring = keyring
        self._provider_of = provider_of
        self._asked: set[str] = set()
        self._is_over = False

    def wait(self, name: str, value: object, timeout: float | timedelta) -> Any:  # noqa: ANN401  the event's data
        """Return the data of the event that is waited for, None where none came in time; an awaitable for `async def`.

        Raises: `WaitError`; `Waits`, which ends the attempt; `LeaseLost`, `LedgerAway`, `CannotDecrypt`.
        """
        if self._handler.batch is not None or self._handler.is_long:
            raise WaitError(NO_WAITS)
        awaited = dict(self._handler.awaits).get(name)
        if awaited is None:
            raise WaitError(
                f"handler '{self._handler.name}' has not declared that it waits for {name!r}; write it with its @on: "
                f"{_EXAMPLE}"
            )
        wanted = waited_text(value)
        if wanted is None:
            raise WaitError(
                f"the wait '{name}': its value is {_said(value)}; expected text that is not empty, or a number, of at "
                f"most {LONGEST_VALUE} bytes"
            )
        span = timeout if isinstance(timeout, timedelta) else _seconds(timeout)
        if span is None or not timedelta(0) <= span <= LONGEST:
            raise WaitError(
                f"the wait '{name}': {timeout=} is wrong; expected seconds or a timedelta, {LONGEST.days} days at most"
            )
        if name in self._asked:
            raise WaitError(
                f"the wait '{name}' was asked for in this attempt already; declare a name for each event that the "
                f"handler waits for, such as '{name}-1', '{name}-2'"
            )
        self._asked.add(name)
        look = partial(self._answer, name, awaited, awaited.key(wanted), span)
        return asyncio.to_thread(look) if self._handler.signature.is_async else look()

    def note(self, arrivals: Sequence[tuple[bytes, int]]) -> set[bytes]:
        """Note arrivals, for a handler of our own; see `waits.note`."""
        with lent(self._connect) as connection:
            busy = waits.note(connection, arrivals)
        reach("wait.told")
        return busy

    def require_ended(self) -> None:
        """Raise `RuntimeError` where a handler goes on though its attempt is to end."""
        if self._is_over:
            raise RuntimeError("the handler caught what event.wait raises to end the attempt; let it out")

    def _answer(self, name: str, awaited: Awaited, key: bytes, timeout: timedelta) -> Any:  # noqa: ANN401
        run = self._run
        who = {"handler": run.handler, "cycle": run.cycle, "name": name, **run.key._asdict()}
        with lent(self._connect) as connection:
            state = waits.wait(connection, who, awaited, key, timeout)
            if state is None:
                raise LeaseLost(
                    f"wait '{name}' of handler {run.handler}: another attempt has this run, or none"
                )
            if state.key != key:
                raise WaitError(
                    f"the wait '{name}' is for another value than in an attempt before; take the value from the event "
                    "or from a step, not from the clock or from rows that change"
                )
            if not state.has_ended:
                self._is_over = True
                raise Waits(name, max(state.left, timedelta(0)))
            if state.answer is None:
                return None
            found = rereading.stored(connection, state.answer, self._keyring)
        if found is None:
            return {"event": state.answer}
        body = found.body
        provider = None if body.is_element else self._provider_of(found.source, found.provider)
        return data_of(provider, Delivery("POST", body.url, body.headers, body.body))


def register(registry: Registry) -> None:
    """Add a handler for each source and type that others wait for; one that is there stays."""
    for source, kind in dict.fromkeys((each.source, each.type) for each in _awaited(registry)):
        name = f"waits for {source} {kind}"
        if registry.named(name) is None:
            function = partial(note, registry=registry, source=source, kind=kind)
            limit, batch = timedelta(seconds=30), BatchSize(AT_ONCE)
            registry.add(Handler(name, source, kind, function, ATTEMPTS, DEFAULT_BACKOFF, limit, batch=batch))


def _awaited(registry: Registry) -> list[Awaited]:
    return [awaited for handler in registry for _, awaited in handler.awaits]


def note(events: Sequence[ReceivedEvent], _tx: object, *, registry: Registry, source: str, kind: str) -> None:
    """Note events by their values at the places that handlers have declared.

    Raises `RetryLater` for those that are to be noted again.
    """
    places = {each for each in _awaited(registry) if (each.source, each.type) == (source, kind)}
    arrivals = [(key, event) for event in events for key in _keys(event, places)]
    if not arrivals:
        return
    of_event: EventWaits = events[0].capability(WAITS)
    busy = of_event.note([(key, event.id) for key, event in arrivals])
    if again := [event for key, event in arrivals if key in busy]:
        raise RetryLater(AGAIN, event=again)


def _keys(event: ReceivedEvent, places: Iterable[Awaited]) -> Iterator[bytes]:
    for each in places:
        found = json_paths.find(event.data, json_paths.parse(each.place))
        if (value := waited_text(found)) is not None:
            yield each.key(value)
        elif found is not None:
            _warn_once(
                each,
                "events of %s %s can't be waited for: the value at %s is %s; expected a place in awaits= that leads to "
                f"text or a number of at most {LONGEST_VALUE} bytes",
                *each,
                _said(found),
            )


def watched(call: Call, handler: Handler, entities_of: EntitiesOf) -> Call:
    """Return a call of a handler that warns once where the handler writes by `tx` before it waits.

    The first calls are looked at: as a rule, the others do as these do.
    """
    left = LOOKS

    def call_watched(event: Any, given: Any) -> object:  # noqa: ANN401  what handlers are given
        nonlocal left
        if left <= 0:
            return call(event, given)
        left -= 1
        before = _writes(entities_of(given).cursor)
        try:
            return call(event, given)
        except Waits as waiting:
            with suppress(psycopg.Error):
                if _writes(entities_of(given).cursor) not in {before, None}:
                    left = 0
                    _warn_once(
                        (handler.name, str(waiting)),
                        "handler %s writes before it %s; these writes are rolled back, and made again once it goes on",
                        handler.name,
                        str(waiting),
                    )
            raise

    return call_watched


# Of this transaction and those before it that PostgreSQL has not added up yet.
_WRITES = "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_xact_user_tables"


def _writes(cursor: psycopg.Cursor[Any]) -> int | None:
    """Return how many rows were written; None where the transaction can't be asked."""
    if cursor.connection.pgconn.transaction_status != TransactionStatus.INTRANS:
        return None
    row = cursor.execute(_WRITES).fetchone()
    return None if row is None else row[0]


def _warn_once(about: tuple[str, ...], message: str, *values: str) -> None:
    """Log a warning, unless this process has logged one `about` the same: none depends on a sender's values."""
    if about not in _told:
        _told.add(about)
        log.warning(message, *values)


def waited_text(value: object) -> str | None:
    """Return a value as the text by which it is known, numbers as JSON has them; None for what can't be waited for."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = int(value) if value.is_integer() else value
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if isinstance(value, int) and value.bit_length() > 8 * LONGEST_VALUE:
        return None  # Python refuses to write so long a number
    if isinstance(value, str):
        text = str.__str__(value)  # not as an Enum writes it
    else:
        text = float.__repr__(value) if isinstance(value, float) else int.__repr__(value)
    return text if 0 < len(text.encode("utf-8", "surrogatepass")) <= LONGEST_VALUE else None


def _said(value: object) -> str:
    """Return what kind a value is; never the value itself, which is a sender's."""
    if isinstance(value, str) and value:
        return f"a text of {len(value.encode('utf-8', 'surrogatepass'))} bytes"
    return "empty" if value == "" else f"a {type(value).__name__}"


def _seconds(timeout: object) -> timedelta | None:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        return None
    return timedelta(seconds=timeout) if 0 <= timeout <= LONGEST.total_seconds() else None


@contextmanager
def lent(connect: Connections) -> Iterator[psycopg.Connection]:
    """Lend a connection for what waits write. Raises `LedgerAway` where there is none, or it goes away."""
    try:
        with connect() as connection:
            yield connection
    except (psycopg.OperationalError, LedgerUnavailable) as error:
        raise LedgerAway(
            f"a wait can't be written: PostgreSQL does not answer, or not in time ({type(error).__name__})"
        ) from error
