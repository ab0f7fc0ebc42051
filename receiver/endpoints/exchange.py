"""One request, from its key to its answer. What awaits is the same in asyncio, with the store in a thread."""

import asyncio
import functools
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

from hookonce.receiver.endpoints import policy, stores
from hookonce.receiver.endpoints.attempt import Operation, current_operation, running
from hookonce.receiver.endpoints.frameworks.request import Asked, Framework
from hookonce.receiver.endpoints.policy import Policy
from hookonce.receiver.failpoints import reach
from hookonce.receiver.idempotency.counted import Counted
from hookonce.receiver.idempotency.fingerprint import Request
from hookonce.receiver.idempotency.operation import Stored
from hookonce.receiver.idempotency.records import (
    Claim,
    InProgress,
    Key,
    KeyReused,
    LeaseLost,
    Result,
    State,
    Store,
    StoreUnavailable,
    Terms,
    scope_of,
)
from hookonce.receiver.logs import limited

log = limited(__name__)

_LOOK = 0.05
"""Seconds between two looks at a request that is waited for."""

Scope = str | tuple[str, ...]
Arguments = Mapping[str, Any]
"""The arguments that a view was called with, by name."""
Transaction = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Exchange:
    """How the requests of one operation are answered; `Idempotent` says what each of these is.

    `scope_arguments` are the endpoint's arguments that `scope` is given, by name.
    """

    name: str
    store: Callable[[], Store]
    counted: Counted
    policy: Policy
    terms: Terms
    scope: Callable[..., Scope] | None
    scope_arguments: tuple[str, ...]
    is_required: bool
    headers: tuple[str, ...]
    version: str
    transaction: Transaction | None

    def claim(self, asked: Asked, request: object, arguments: Arguments) -> Claim | Result | None:
        """Return the right to work, or what to answer, or None to work without a key; waits as the policy says."""
        until = time.monotonic() + self.policy.wait.total_seconds()
        looks = count()
        while isinstance(begun := self._begin(asked, request, arguments, again=next(looks) > 0), InProgress):
            if time.monotonic() >= until:
                return self.policy.under_way(begun.lease_left)
            time.sleep(_LOOK)
        return begun

    async def claim_async(self, asked: Asked, request: object, arguments: Arguments) -> Claim | Result | None:
        """Return what `claim` does."""
        until = time.monotonic() + self.policy.wait.total_seconds()
        looks = count()
        look = functools.partial(self._begin, asked, request, arguments)
        while isinstance(begun := await asyncio.to_thread(look, again=next(looks) > 0), InProgress):
            if time.monotonic() >= until:
                return self.policy.under_way(begun.lease_left)
            await asyncio.sleep(_LOOK)
        return begun

    def working(self, claim: Claim) -> AbstractContextManager[None]:
        """Let `current_operation` be the attempt of a claim."""
        return running(Operation(self.counted, self.store(), claim.key, claim))

    def serve(
        self, framework: Framework, request: object, arguments: Arguments, view: Callable[[], Any]
    ) -> Any:  # noqa: ANN401  the framework's response
        """Return the response to a request: what the view gives, or the answer in its place."""
        begun = self.claim(framework.asked(request), request, arguments)
        if begun is None:
            return view()
        if isinstance(begun, Result):
            return framework.response(begun)
        try:
            with self.working(begun):
                answer = self._work(framework, begun, view)
        except Exception as error:
            self.failed(begun, framework.status_of(error))
            raise
        reach("operation.answered")
        return answer

    async def serve_async(
        self, framework: Framework, request: object, arguments: Arguments, view: Callable[[], Awaitable[Any]]
    ) -> Any:  # noqa: ANN401  the framework's response
        """Return what `serve` does."""
        begun = await self.claim_async(framework.asked(request), request, arguments)
        if begun is None:
            return await view()
        if isinstance(begun, Result):
            return framework.response(begun)
        try:
            with self.working(begun):
                response, result = framework.read(await view())
                refused = await self.end_async(begun, result)
        except (
            Exception
        ) as error:  # a request that is cancelled may have had its effect: its lease is to tell
            await asyncio.to_thread(self.failed, begun, framework.status_of(error))
            raise
        reach("operation.answered")
        return response if refused is None else framework.response(refused)

    def _begin(
        self, asked: Asked, request: object, arguments: Arguments, *, again: bool
    ) -> Claim | Result | InProgress | None:
        """Return what to do: work under a claim, answer, wait, or work without a key."""
        if asked.key is None:
            return policy.no_key() if self.is_required else None
        try:
            key = policy.read_key(asked.key)
        except policy.BadKey as error:
            return policy.no_key(str(error))
        whose = self._key(key, request, arguments)
        try:
            fingerprint = self._fingerprint(asked)
            begun = self.counted.begin(self.store(), whose, fingerprint, self.terms, again=again)
        except InProgress as busy:
            return busy
        except KeyReused:
            return self.policy.reused()
        except StoreUnavailable as error:
            log.warning("keys of the operation '%s' can't be looked up: %s", self.name, error)
            return policy.unavailable()
        return policy.replayed(begun.result) if isinstance(begun, Stored) else begun

    def _key(self, key: str, request: object, arguments: Arguments) -> Key:
        chosen = {name: arguments[name] for name in self.scope_arguments if name in arguments}
        parts = scope_parts(self.scope(request, **chosen)) if self.scope else ()
        return Key(scope_of(self.name, *parts), key)

    def _fingerprint(self, asked: Asked) -> bytes:
        headers = {name: asked.headers.get(name) or "" for name in self.headers}
        return Request(
            asked.method,
            asked.path,
            asked.body,
            asked.headers.get("Content-Type") or "",
            query=asked.query,
            headers=headers,
            version=self.version,
        ).fingerprint()

    def _work(self, framework: Framework, claim: Claim, view: Callable[[], Any]) -> Any:  # noqa: ANN401
        try:
            with self.transaction() if self.transaction else nullcontext() as transaction:
                current_operation().transaction = transaction
                response, result = framework.read(view())
                if self.transaction is not None:
                    reach("operation.done")
                    self._store_within(transaction, claim, result)
        except _Undone:
            self.failed(claim, result.status)
            return response
        except LeaseLost:
            return framework.response(self.policy.under_way())
        if self.transaction is not None:
            reach("operation.completed")
            return response
        refused = self.end(claim, result)
        return response if refused is None else framework.response(refused)

    def _store_within(self, transaction: object, claim: Claim, result: Result) -> None:
        state = policy.state_of(result.status)
        if state is State.FAILED_RETRYABLE:
            raise _Undone
        with self.counted.ended(state):
            stores.complete_within(self.store(), transaction, claim, state, policy.storable(result))

    def end(self, claim: Claim, result: Result) -> Result | None:
        """Store what came of a claim; return what to answer instead, if somebody else has it by now."""
        state = policy.state_of(result.status)
        try:
            if state is State.FAILED_RETRYABLE:
                self._give_up(claim, result.status)
            else:
                self.counted.complete(self.store(), claim, policy.storable(result), state)
        except LeaseLost:
            log.warning("an attempt of '%s' ended after its lease, and was repeated by another", self.name)
            return self.policy.under_way()
        except StoreUnavailable as error:  # it has been done: the client may know, and the lease runs out
            log.error("the answer of the operation '%s' could not be stored: %s", self.name, error)  # noqa: TRY400
        return None

    async def end_async(self, claim: Claim, result: Result) -> Result | None:
        """Return what `end` does; it goes on if the request is cancelled meanwhile."""
        return await asyncio.shield(asyncio.to_thread(self.end, claim, result))

    def failed(self, claim: Claim, status: int | None = None) -> None:
        """Let the same request be tried again after an exception, which the framework answers with `status`."""
        with suppress(LeaseLost, StoreUnavailable):  # then the lease runs out
            self._give_up(claim, status)

    def _give_up(self, claim: Claim, status: int | None) -> None:
        """End a claim without an answer. The key of a stranger's only attempt is its owner's: it is given back.

        An attempt before this one may have had its effect: then what it was asked for stays with its key.
        """
        if status in policy.STRANGER and claim.attempt == 1:
            self.counted.abandon(self.store(), claim)
        else:
            self.counted.fail_for_now(self.store(), claim)


class _Undone(Exception):  # noqa: N818  rolls a transaction back
    """The endpoint has answered that it could not: its transaction is not to be committed."""


def scope_parts(scope: Scope) -> tuple[str, ...]:
    """Return the parts of a scope. Raises: TypeError."""
    parts = scope if isinstance(scope, tuple) else (scope,)
    if not all(isinstance(part, str) for part in parts):
        raise TypeError(
            f"the scope of a key is {scope!r}; expected text or a tuple of texts, such as a tenant's id"
        )
    return parts
