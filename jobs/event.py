"""The event as a handler sees it."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from hookonce.providers.kit.events.subjects import Subject
from hookonce.receiver.ledger.runs.ends import Also
from hookonce.receiver.ledger.steps import idempotency_key

if TYPE_CHECKING:
    from sqlalchemy import Connection

HAS_TRANSACTION = (
    "this handler has a transaction, its second argument; event.tx() is for a run of @on(..., tx='none') "
    "(in a test: inbox.deliver)"
)
StepFunction = Callable[[str], Any]
"""Takes the step's key."""
OnUnknown = Literal["retry", "stop"]
STEPS = "steps"
"""The name of the capability that steps are."""
AFTER_COMMIT = "after_commit"
"""The name of the capability to leave calls behind."""
WAITS = "waits"
"""The name of the capability that waits are."""
NO_WAITS = (
    "this event can't wait; event.wait is for a handler (@on with awaits=) that takes one event in a transaction "
    "(in a test: inbox.deliver), not for a batch and not with tx='none'"
)
NO_STEPS = (
    "this event can have no steps; they are for a handler (@on) that takes one event, whose run keeps them "
    "(in a test: inbox.deliver)"
)


class QuotesNothing(Exception):  # noqa: N818  a kind of error
    """An error whose text is ours and quotes nothing of the event: kept in the clear also where bodies are sealed."""


class BodyDropped(QuotesNothing):
    """Retention has dropped the body of this event, so it can't be handled any more."""


class StepError(QuotesNothing):
    """A step that can't be done as the handler asks for it; nothing was called."""


class WaitError(QuotesNothing):
    """A wait that can't be, as the handler asks for it."""


class Refusal(Exception):  # noqa: N818  what the handler answers
    """Raised by the handler of a command: it can't be done, for good; nothing that was written stays.

    The client is answered with problem details of `status` (400 to 499), `code` and `detail`, now and ever after.
    Raises: ValueError for another status.
    """

    def __init__(self, status: int, code: str, detail: str = "") -> None:
        if not 400 <= status <= 499:  # noqa: PLR2004  of a client
            raise ValueError(f"a refusal of status {status}; expected 400 to 499")
        super().__init__(f"{code}: {detail}" if detail else code)
        self.status = status
        self.code = code
        self.detail = detail


class Postponed(Exception):  # noqa: N818  a verdict about the run
    """Ends an attempt uncharged: its run is due again after `delay`. `RetryLater` is one; a capability may raise more.

    `waits` is the run's reason to wait besides (`states.Waits`); `also` is written in the transaction that ends the
    attempt.
    """

    delay: timedelta
    waits: str | None = None
    also: Also | None = None


class Capability:
    """An ability of one attempt's event beside its data, made when the handler first asks for it.

    `jobs.attempts.handler_event` has the makers. A capability may end the attempt uncharged, by raising a `Postponed`.
    """

    calls: Sequence[Callable[[], object]] = ()
    """Calls to be made, in order, once the end of a run that is done is durable and logged; their errors are logged."""

    def require_ended(self) -> None:
        """Raise `RuntimeError` where the handler has returned while something that it began is under way."""


class AfterCommit(Capability):
    """The calls that a handler leaves to be made once its end is durable; a failed attempt's are never made."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], object]] = []


@dataclass
class ReceivedEvent:
    """An event as its sender told it, and the attempt that is made of it.

    `id` is the ledger's number, `event_id` the sender's. `idempotency_key` is the same for every attempt of
    this handler on this event: pass it to payment APIs. `repeat_of` is the ledger id of an earlier event with
    the same body whose id, too, was not covered by the signature. `is_test`: an operator sent it to see whether this
    works; leave out what costs money or reaches people.
    """

    id: int
    event_id: str
    source: str
    provider: str
    type: str
    account: str | None
    occurred_at: datetime | None
    received_at: datetime
    headers: Mapping[str, str]
    raw: bytes
    attempt: int
    repeat_of: int | None
    is_test: bool
    _handler: str = field(repr=False)
    _parse: Callable[[], Any] = field(repr=False)
    _make: Callable[[str], Capability | None] | None = field(default=None, repr=False)
    _transactions: "Callable[[], AbstractContextManager[Connection]] | None" = field(default=None, repr=False)
    capabilities: dict[str, Capability] = field(default_factory=dict, repr=False)
    """Those that the handler has asked for, by name."""
    _subject: Callable[[Any], Subject | None] | None = field(default=None, repr=False)
    is_stale: bool = False
    """Whether its handler, with stale="flag", has done a newer version of the entity."""

    def tx(self) -> "AbstractContextManager[Connection]":
        """Open a short transaction, in a handler with `tx="none"`: committed at the end of the block, unless it raises.

        It has locked the run for us. Raises: `LeaseLost` where the run is no longer ours; nothing was written then.
        """
        if self._transactions is None:
            raise RuntimeError(HAS_TRANSACTION)
        return self._transactions()

    @cached_property
    def data(self) -> Any:  # noqa: ANN401  whatever the sender sent
        """The payload, parsed by the provider; None where it can't be read."""
        return self._parse()

    @cached_property
    def subject(self) -> Subject | None:
        """The entity that it is about, and the version of it that it tells; None where neither sender nor handler says.

        A time is a version of so many microseconds since 1970.
        """
        return self._subject(self.data) if self._subject is not None else None

    def step(
        self,
        name: str,
        function: StepFunction,
        *,
        recover: StepFunction | None = None,
        on_unknown: OnUnknown = "retry",
    ) -> Any:  # noqa: ANN401  what the function gives, as JSON keeps it
        """Do a part of the handler once for this event: later attempts get what it gave (JSON).

        `function` is called with the step's key, the same on each attempt, for the other side. Where an attempt was
        cut off in it, `recover` is called with the key first: it returns the result, `NEVER_HAPPENED` or `UNKNOWN`.
        Where nobody knows, the function is called again ("retry"), or the step waits for a person ("stop"). In an
        `async def` handler the call is awaited, and the functions may be `async def`. The handler needs `name=`.
        Raises: `StepError`, `StepStopped`, and what the functions raise.
        """
        return self._steps().do(name, function, recover, on_unknown)

    def step_key(self, name: str) -> str:
        """Return the key that a step's functions are called with (64 hex digits). Raises: `StepError`."""
        key: str = self._steps().key(name)
        return key

    def after_commit(self, call: Callable[[], object]) -> None:
        """Have `call` be made once this run is done and durable; in a batch, once the batch is.

        It may be `async def`; its error is logged and changes nothing. A process that dies in between forgets it: what
        must happen belongs in the transaction, or in a step. Raises: `RuntimeError` outside of a run.
        """
        if (made := self.capability(AFTER_COMMIT)) is None:
            raise RuntimeError(
                "event.after_commit() is for an event that is being handled (in a test: inbox.deliver)"
            )
        made.calls.append(call)

    def wait(self, name: str, value: object, *, timeout: float | timedelta) -> Any:  # noqa: ANN401  the event's data
        """Wait for the first event of a source and type that the handler has declared under `name` (`awaits=`).

        Return the data of the event whose value at the declared place is `value`, whether it has come already or comes
        later; None where none comes within `timeout` (seconds or a timedelta, 90 days at most) of the first call. An
        event whose body is gone by then is `{"event": ID}`. The attempt ends meanwhile, and what it wrote is rolled
        back; another one, uncharged, calls the handler again and gets the same answer. In an `async def` handler the
        call is awaited. Raises: `WaitError`.
        """
        if (waits := self.capability(WAITS)) is None:
            raise WaitError(NO_WAITS)
        return waits.wait(name, value, timeout)

    def capability(self, name: str) -> Any:  # noqa: ANN401  each is of a class of its own
        """Return a `Capability` of this attempt, made for the first that asks; None where the event can have none."""
        made = self.capabilities
        if name not in made and self._make is not None and (new := self._make(name)) is not None:
            made.setdefault(name, new)  # the first thread's is everybody's
        return made.get(name)

    def _steps(self) -> Any:  # noqa: ANN401  `jobs.capabilities.steps.Steps`
        if (steps := self.capability(STEPS)) is None:
            raise StepError(NO_STEPS)
        return steps

    def expect(self, version: object) -> None:
        """Refuse a command that was meant for another version of what it changes than the one there is now.

        It says so in the header `Expected-Version`; without that it takes any. Raises: `Refusal` (409).
        """
        expected = self.headers.get("expected-version")
        if expected is not None and expected.strip('"') != str(version):
            raise Refusal(409, "version_conflict", f"expected version {expected}; it is {version} by now")

    def not_after(self, span: timedelta) -> None:
        """Refuse a command that waited for longer than this before it could be done. Raises: `Refusal` (409)."""
        if datetime.now(UTC) - self.received_at > span:
            raise Refusal(409, "too_late", f"it could not be done within {span.total_seconds():g} s")

    @cached_property
    def idempotency_key(self) -> str:
        """The same for every attempt of this handler on this event, and for no other (64 hex digits)."""
        return idempotency_key(self.source, self.event_id, self._handler)


def json_or_none(body: bytes) -> Any:  # noqa: ANN401
    """Return a body as JSON, None where it is none."""
    try:
        return json.loads(body.decode())
    except (ValueError, RecursionError):
        return None
