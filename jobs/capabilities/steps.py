"""Steps: parts of a handler that are done once for its event, whatever becomes of the attempt around them.

    charge = event.step("charge", lambda key: payments.charge(order, idempotency_key=key), recover=payments.find)

That a step is in progress is committed before its function is called, and its result after, both on a connection of
its own. So a later attempt tells a step that was cut off from one that never ran. Nobody can tell from here what came
of the first: `recover` asks the other side by the step's key, and where nobody answers, the function is called again
under the same key, or a person decides (docs/decisions/0022).

The way of a step is said once, in `_way`; how its parts are called, by an `async def` handler or any other, is not.
"""

import asyncio
import inspect
import json
import logging
import re
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final, NoReturn

from hookonce.jobs.event import (
    Capability,
    OnUnknown,
    Postponed,
    QuotesNothing,
    Refusal,
    StepError,
    StepFunction,
)
from hookonce.jobs.failures.error_summary import whereabouts
from hookonce.jobs.handlers import STEPS_NEED_A_NAME, GiveUp, Handler
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.idempotency import operation, records
from hookonce.receiver.idempotency.postgresql import Connections
from hookonce.receiver.idempotency.records import Claim, Key, Result, State, Store, StoreUnavailable, scope_of
from hookonce.receiver.idempotency.steps import FINGERPRINT, TERMS, StepStore
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import LeaseLost
from hookonce.receiver.ledger.steps import idempotency_key, step_key

log = logging.getLogger(__name__)

_NAME = re.compile(r"[!-~]{1,100}")
_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)
CUT_OFF = "it was cut off, or failed, and nobody knows whether it happened"
_DECIDE = "look there by its key, then `hookonce steps done` with its result, or `hookonce steps forget`, and replay"


class Recovered(Enum):
    """The answer of `recover` that stands for no result."""

    NEVER_HAPPENED = "never happened"
    UNKNOWN = "unknown"


NEVER_HAPPENED: Final = Recovered.NEVER_HAPPENED
"""Returned by `recover`: the other side does not know the key, so the function is called."""
UNKNOWN: Final = Recovered.UNKNOWN
"""Returned by `recover`: the other side can't tell; `on_unknown` says what then."""


class StepStopped(GiveUp, QuotesNothing):
    """A step waits for a person, and the run with it."""


@dataclass(frozen=True, slots=True)
class _Step:
    key: Key
    own_key: str
    function: StepFunction
    recover: StepFunction | None
    on_unknown: OnUnknown

    @property
    def name(self) -> str:
        return self.key.key


@dataclass(frozen=True, slots=True)
class _Call:
    """The next call; `is_theirs`: of the user's function, which may be awaited."""

    function: Callable[[], Any]
    is_theirs: bool = False


_Way = Generator[_Call, Any, Any]


class Steps(Capability):
    """The steps of one attempt, in the order its handler asks for them; for any number of threads or tasks."""

    def __init__(self, store: Store, handler: Handler, event: int, idempotency_key: str) -> None:
        self._store = store
        self._scope = scope_of("step", str(event), handler.name)
        self._handler = handler.name
        self._idempotency_key = idempotency_key
        self._is_async = handler.signature.is_async
        self._is_named = handler.is_named
        self._under_way: set[str] = set()
        self._done: set[str] = set()

    def do(
        self, name: str, function: StepFunction, recover: StepFunction | None, on_unknown: OnUnknown
    ) -> Any:  # noqa: ANN401
        """Do a step, or give what it gave; for an `async def` handler, return what gives that when awaited.

        Raises: `StepError`, `StepStopped`, `LeaseLost`, `StoreUnavailable`, and what the functions raise.
        """
        self._require(name, function, recover, on_unknown)
        step = _Step(Key(self._scope, name), self.key(name), function, recover, on_unknown)
        if name in self._done or name in self._under_way:
            what = "is under way" if name in self._under_way else "was done"
            raise StepError(
                f"the step '{name}' {what} in this attempt already; give each step of a handler a name of its own, "
                f"such as '{name}-1', '{name}-2' in a loop"
            )
        self._under_way.add(name)
        return self._drive_async(step) if self._is_async else self._drive(step)

    def key(self, name: str) -> str:
        """Return the key of a step: the same on each attempt and replay, and of no other step (64 hex digits)."""
        return step_key(self._idempotency_key, name)

    def require_ended(self) -> None:
        """Raise `RuntimeError` where a handler has returned before a step of its had ended."""
        if self._under_way:
            names = ", ".join(f"'{name}'" for name in sorted(self._under_way))
            raise RuntimeError(
                f"the handler returned before these steps had ended: {names}; await event.step(…)"
                if self._is_async
                else f"the handler returned before these steps had ended: {names}; wait for its threads"
            )

    def _require(
        self, name: str, function: StepFunction, recover: StepFunction | None, on_unknown: OnUnknown
    ) -> None:
        """Raise `StepError` for what could only go wrong once the function was called."""
        if not self._is_named:
            raise StepError(STEPS_NEED_A_NAME.format(handler=self._handler))
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise StepError(
                f"{name!r} can't be the name of a step; expected 1 to 100 visible characters of ASCII, no blanks"
            )
        if on_unknown not in {"retry", "stop"}:
            raise StepError(f"the step '{name}': {on_unknown=} is not known; expected 'retry' or 'stop'")
        for what, called in (("function", function), ("recover", recover)):
            if called is None and what == "recover":
                continue
            if not callable(called) or not _takes_key(called):
                raise StepError(
                    f"the step '{name}': its {what} must take one argument, the step's key, as in "
                    f'event.step("{name}", lambda key: …)'
                )
            if inspect.iscoroutinefunction(called) and not self._is_async:
                raise StepError(
                    f"the step '{name}': its {what} is an async def, and the handler is none; make both async, or none"
                )

    def _drive(self, step: _Step) -> Any:  # noqa: ANN401
        way = self._way(step)
        try:
            call = next(way)
            while True:
                try:
                    gave = call.function()
                    if call.is_theirs and isinstance(gave, Awaitable):
                        _close(gave)
                        raise StepError(  # noqa: TRY301  as what was called had raised it
                            f"the step '{step.name}' gave something to be awaited; make its handler an async def"
                        )
                except Exception as error:  # noqa: BLE001  the way says what becomes of it
                    call = way.throw(error)
                else:
                    call = way.send(gave)
        except StopIteration as end:
            return end.value
        finally:
            way.close()
            self._under_way.discard(step.name)

    async def _drive_async(self, step: _Step) -> Any:  # noqa: ANN401
        way = self._way(step)
        try:
            call = next(way)
            while True:
                try:
                    if not call.is_theirs:
                        gave = await asyncio.to_thread(call.function)
                    elif isinstance(gave := call.function(), Awaitable):
                        gave = await gave
                except Exception as error:  # noqa: BLE001  the way says what becomes of it
                    call = way.throw(error)
                else:
                    call = way.send(gave)
        except StopIteration as end:  # never out of a coroutine: it would be a RuntimeError
            return end.value
        finally:
            way.close()
            self._under_way.discard(step.name)

    def _way(self, step: _Step) -> _Way:
        """Claim, recover, call, store: yields what is to be called, is sent what it gave, and returns the result.

        What is no `Exception` (a time limit, a cancelled task) leaves the step as it is: cut off.
        """
        try:
            begun = yield _Call(partial(operation.begin, self._store, step.key, FINGERPRINT, TERMS))
        except records.LeaseLost as lost:
            raise LeaseLost(f"step '{step.name}' of handler {self._handler}: {lost}") from None
        if isinstance(begun, operation.Stored):
            return self._stored(step, begun)
        try:
            if (
                begun.is_uncertain
                and (found := (yield from self._recovered(step, begun))) is not NEVER_HAPPENED
            ):
                gave = found
            else:
                gave = yield _Call(partial(step.function, step.own_key), is_theirs=True)
        except StepStopped:
            raise
        except (Postponed, GiveUp, Refusal):  # it says so itself: nothing has happened
            yield from self._left(operation.abandon, begun)
            raise
        except Exception:
            yield from self._left(operation.fail_for_now, begun)
            raise
        return (yield from self._kept(step, begun, gave))

    def _recovered(self, step: _Step, claim: Claim) -> _Way:
        """Return what a step gave that was cut off, or NEVER_HAPPENED where its function is to be called (again)."""
        found = UNKNOWN
        if step.recover is not None:
            found = yield _Call(partial(step.recover, step.own_key), is_theirs=True)
        if found is not UNKNOWN:
            return found
        if step.on_unknown == "stop":
            yield from self._stop(step, claim, CUT_OFF)
        return NEVER_HAPPENED

    def _kept(self, step: _Step, claim: Claim, gave: object) -> _Way:
        """Store a result and return it as later attempts are going to get it."""
        try:
            text = json.dumps(gave, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError):
            text = None
        if text is None or len(text) > self._store.max_result:
            kind = f"{type(gave).__name__}, which is not JSON" if text is None else f"{len(text)} bytes"
            expected = f"at most {self._store.max_result} bytes of JSON"
            yield from self._stop(step, claim, f"it was done; it gave {kind}, expected {expected}")
            return None
        yield from self._ended(step, claim, Result(0, {}, text), State.COMPLETED)
        self._done.add(step.name)
        return json.loads(text)

    def _stored(self, step: _Step, stored: operation.Stored) -> Any:  # noqa: ANN401
        if stored.state is State.FAILED_FINAL:
            _raise_stopped(step, "it waits for a person")
        self._done.add(step.name)
        return json.loads(stored.result.body)

    def _stop(self, step: _Step, claim: Claim, why: str) -> _Way:
        yield from self._ended(step, claim, Result(0, {}, why.encode(), is_kept=False), State.FAILED_FINAL)
        _raise_stopped(step, why)

    def _ended(self, step: _Step, claim: Claim, result: Result, state: State) -> _Way:
        try:
            yield _Call(partial(operation.complete, self._store, claim, result, state))
        except records.LeaseLost as lost:
            raise LeaseLost(f"step '{step.name}' of handler {self._handler}: {lost}") from None

    def _left(self, leave: Callable[[Store, Claim], None], claim: Claim) -> _Way:
        """End a claim without a result; where that fails, the step stays as if it was cut off."""
        with suppress(records.LeaseLost):
            try:
                yield _Call(partial(leave, self._store, claim))
            except StoreUnavailable as error:
                log.warning("the end of a step was not noted: %s", whereabouts(error))


def steps_of(run: ClaimedRun, handler: Handler, connect: Connections, keyring: Keyring) -> Steps:
    """Return the steps of a claimed run's attempt."""
    store = StepStore(connect, run, keyring)
    key = idempotency_key(run.event.source, run.event.event_id, run.handler)
    return Steps(store, handler, run.event.id, key)


def _raise_stopped(step: _Step, why: str) -> NoReturn:
    raise StepStopped(f"the step '{step.name}' is stopped: {why}; {_DECIDE} (key {step.own_key})")


def _takes_key(function: StepFunction) -> bool:
    """Whether a function can be called with a key; one whose first parameter has a default means that for another."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):  # written in C: it does not tell
        return True
    try:
        found.bind("key")
    except TypeError:
        return False
    first = next(iter(found.parameters.values()))
    return first.kind in _POSITIONAL and first.default is inspect.Parameter.empty


def _close(awaitable: Awaitable[Any]) -> None:
    if inspect.iscoroutine(awaitable):
        awaitable.close()
