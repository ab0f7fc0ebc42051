"""`hookonce.idempotent`: people's own endpoints and functions, done once per key.

A response that is returned is an answer, and given again: 2xx, 3xx, and 4xx as a refusal for good. An exception is
none, nor are 401, 403, 408, 425, 429 and 5xx: then the same request may be tried again, and no other under its key.
401 and 403 say that a stranger asked: a first attempt that ends so gives the key back, since it is the owner's.
"""

import asyncio
import functools
import inspect
import json
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from datetime import timedelta
from itertools import count
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from hookonce.receiver.config import encryption_keys, servers
from hookonce.receiver.failpoints import reach
from hookonce.receiver.idempotency import operation as machine
from hookonce.receiver.idempotency import policy
from hookonce.receiver.idempotency.counted import Counted
from hookonce.receiver.idempotency.fingerprint import Request
from hookonce.receiver.idempotency.frameworks.detection import cursor_of, framework_of
from hookonce.receiver.idempotency.frameworks.request import Asked, Framework
from hookonce.receiver.idempotency.operation import Stored
from hookonce.receiver.idempotency.policy import Dialect, Policy
from hookonce.receiver.idempotency.postgresql import PostgresStore
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
from hookonce.receiver.idempotency.sealed import SealedStore
from hookonce.receiver.logs import limited

log = limited(__name__)

RETRYABLE = {401, 403, 408, 425, 429}
"""Refusals that say nothing about the request itself: another try may succeed."""
STRANGER = {401, 403}
"""Refusals that say of the client that the key is not its own."""
_LOOK = 0.05
"""Seconds between two looks at a request that is waited for."""
_MARK = "__hookonce_idempotent__"
_DECORATED = "__hookonce_decorated__"
"""The function that is decorated here, beside its decorated self: a decorator above this one has a copy of both."""

P = ParamSpec("P")
R = TypeVar("R")
Scope = str | tuple[str, ...]
Arguments = Mapping[str, Any]
"""The arguments that a view was called with, by name."""
Transaction = Callable[[], AbstractContextManager[Any]]
InThread = Callable[..., Awaitable[Any]]
"""Calls a function in a thread, and awaits what it gives."""
_current: ContextVar["Operation"] = ContextVar("hookonce_operation")


class Operation:
    """One attempt of one operation, or its result of before.

    `attempt` counts from 1. `is_uncertain`: an attempt before this one was cut off, and may have had its effect; ask
    the other side by `idempotency_key`, which is the same on every attempt. `is_done`: it was done before; `value` is
    then what `complete` was given, as JSON keeps it. `transaction` is what the endpoint's `transaction` has opened.
    """

    transaction: Any = None

    def __init__(self, counted: Counted, store: Store, key: Key, begun: Claim | Stored) -> None:
        self._counted = counted
        self._store = store
        self.idempotency_key = machine.downstream_key(key)
        self.claim = begun if isinstance(begun, Claim) else None
        self.attempt = begun.attempt if isinstance(begun, Claim) else 0
        self.is_uncertain = isinstance(begun, Claim) and begun.is_uncertain
        self.is_done = isinstance(begun, Stored)
        self.value: Any = None
        if isinstance(begun, Stored):
            self.value = json.loads(begun.result.body) if begun.result.body else None

    def complete(self, value: object = None, *, within: object = None) -> None:
        """Store what came of it (JSON), in the transaction of `within` if that is given, else at once.

        `within` is a connection or session to the database of the records: psycopg's, SQLAlchemy's or Django's.
        Raises: `LeaseLost`, which must roll back that transaction; `StoreUnavailable`; TypeError; ValueError for
        what is too large, or done.
        """
        if self.claim is None or self.is_done:
            raise ValueError("this operation is done; look at `is_done` before doing it")
        result = Result(200, {}, json.dumps(value).encode())
        if not machine.fitting(self._store, result).is_kept:
            raise ValueError(
                f"a result of {len(result.body)} bytes; expected {self._store.max_result} at most"
            )
        if within is None:
            self._counted.complete(self._store, self.claim, result)
        else:
            with self._counted.ended(State.COMPLETED):
                _postgres(self._store).within(cursor_of(within), self.claim, State.COMPLETED, result)
        self.is_done, self.value = True, value


def current_operation() -> Operation:
    """Return the operation that the endpoint now running is an attempt of. Raises: LookupError outside of one."""
    return _current.get()


class Idempotent:
    """An operation that is done once per key: decorates an endpoint, or is a context manager by `operation`.

    `scope` says whose key it is, from the framework's request: the tenant, the user, or both as a tuple. Its further
    parameters are given the endpoint's arguments of these names, as what a dependency of FastAPI found. Without one,
    given as None, all clients share their keys. `store` is PostgreSQL beside hookonce's ledger unless another is
    given; in each, answers are sealed as `encryption_keys` says. A store that may lose what it confirmed must be told
    `moves_money=False`. `headers` count as part of the request. `transaction` opens the one that the endpoint works in,
    and the answer is stored in it.
    Raises: ValueError, TypeError.
    """

    def __init__(  # noqa: PLR0913  each is a decision of its own
        self,
        name: str,
        *,
        scope: Callable[..., Scope] | None,
        store: Store | None = None,
        in_progress: str = "",
        dialect: Dialect = "hookonce",
        required: bool = True,
        lease: timedelta = timedelta(minutes=1),
        retention: timedelta = timedelta(hours=24),
        headers: Sequence[str] = (),
        version: str = "",
        transaction: Transaction | None = None,
        moves_money: bool | None = None,
    ) -> None:
        self.name = name
        self._counted = Counted(name)
        self.policy = Policy.read(in_progress or ("409" if dialect == "ietf" else "202"), dialect)
        self._scope = scope
        self._scope_arguments = _arguments_of(scope)
        self._store = store
        self._ready: Store | None = None
        self._required = required
        self._terms = Terms(lease, retention)
        self._headers = tuple(headers)
        self._version = version
        self._transaction = transaction
        if store is not None and store.loses and moves_money is not False:
            raise ValueError(
                f"the operation '{name}' can't keep its keys here: {store.loses}. Use PostgreSQL or DynamoDB, or say "
                "moves_money=False if doing it twice costs nobody anything"
            )
        if transaction is not None and store is not None:
            _postgres(store)

    @property
    def store(self) -> Store:
        """Where the records are, their answers sealed if there are `encryption_keys`; found when it is first needed.

        Raises: `ConfigError`.
        """
        if self._ready is None:
            self._ready = _ledger() if self._store is None else _sealing(self._store)
        return self._ready

    @property
    def has_transaction(self) -> bool:
        """Whether the endpoint works in a transaction that is opened for it."""
        return self._transaction is not None

    def __call__(self, view: Callable[P, R]) -> Callable[P, R]:
        """Decorate an endpoint of Flask or Django, or one of FastAPI whose route is an `IdempotentRoute`."""
        if inspect.iscoroutinefunction(view):
            if self._transaction is not None:
                raise TypeError(f"{view.__name__}: transaction= needs a function that is not async")

            @functools.wraps(view)
            async def wrapped_async(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  the view's
                work = functools.partial(view, *args, **kwargs)
                if (served := routed.get()) is not None:
                    return await served.call_async(self, work, kwargs)
                framework, request = framework_of(args)
                return await self._serve_async(framework, request, kwargs, work)

            wrapper: Any = wrapped_async
        else:

            @functools.wraps(view)
            def wrapped(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  the view's
                work = functools.partial(view, *args, **kwargs)
                if (served := routed.get()) is not None:
                    return served.call(self, work, kwargs)
                framework, request = framework_of(args)
                return self._serve(framework, request, kwargs, work)

            wrapper = wrapped
            setattr(wrapper, _DECORATED, (wrapper, view))
        setattr(wrapper, _MARK, self)
        return cast("Callable[P, R]", wrapper)

    @contextmanager
    def operation(self, key: str, asked: object, *, scope: Scope = ()) -> Iterator[Operation]:
        """Do a block once per key: look at `is_done`, work, `complete`. A block that only ends has completed None.

        `asked` is what makes two requests the same one, as JSON. After an exception the same may be asked again.
        Raises: `KeyReused`, `InProgress`, `StoreUnavailable`; ValueError for what is not a key.
        """
        whose = Key(scope_of(self.name, *_parts(scope)), key)
        body = json.dumps(asked).encode()
        fingerprint = Request("", self.name, body, "application/json", version=self._version).fingerprint()
        begun = self._counted.begin(self.store, whose, fingerprint, self._terms)
        operation = Operation(self._counted, self.store, whose, begun)
        if operation.claim is None:
            yield operation
            return
        try:
            yield operation
        except Exception:  # whatever ends it otherwise may come in the middle: its lease is to tell
            self.failed(operation.claim)
            raise
        if not operation.is_done:
            operation.complete()

    # One request, from its key to its answer. What awaits is the same in asyncio, with the store in a thread.

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

    @contextmanager
    def working(self, claim: Claim) -> Iterator[None]:
        """Let `current_operation` be the attempt of a claim."""
        token = _current.set(Operation(self._counted, self.store, claim.key, claim))
        try:
            yield
        finally:
            _current.reset(token)

    def _serve(
        self, framework: Framework, request: object, arguments: Arguments, view: Callable[[], Any]
    ) -> Any:  # noqa: ANN401  the framework's response
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

    async def _serve_async(
        self, framework: Framework, request: object, arguments: Arguments, view: Callable[[], Awaitable[Any]]
    ) -> Any:  # noqa: ANN401  the framework's response
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
            return policy.no_key() if self._required else None
        try:
            key = policy.read_key(asked.key)
        except policy.BadKey as error:
            return policy.no_key(str(error))
        whose = self._key(key, request, arguments)
        try:
            fingerprint = self._fingerprint(asked)
            begun = self._counted.begin(self.store, whose, fingerprint, self._terms, again=again)
        except InProgress as busy:
            return busy
        except KeyReused:
            return self.policy.reused()
        except StoreUnavailable as error:
            log.warning("keys of the operation '%s' can't be looked up: %s", self.name, error)
            return policy.unavailable()
        return policy.replayed(begun.result) if isinstance(begun, Stored) else begun

    def _key(self, key: str, request: object, arguments: Arguments) -> Key:
        chosen = {name: arguments[name] for name in self._scope_arguments if name in arguments}
        parts = _parts(self._scope(request, **chosen)) if self._scope else ()
        return Key(scope_of(self.name, *parts), key)

    def _fingerprint(self, asked: Asked) -> bytes:
        headers = {name: asked.headers.get(name) or "" for name in self._headers}
        return Request(
            asked.method,
            asked.path,
            asked.body,
            asked.headers.get("Content-Type") or "",
            query=asked.query,
            headers=headers,
            version=self._version,
        ).fingerprint()

    def _work(self, framework: Framework, claim: Claim, view: Callable[[], Any]) -> Any:  # noqa: ANN401
        try:
            with self._transaction() if self._transaction else nullcontext() as transaction:
                _current.get().transaction = transaction
                response, result = framework.read(view())
                if self._transaction is not None:
                    reach("operation.done")
                    self._store_within(transaction, claim, result)
        except _Undone:
            self.failed(claim, result.status)
            return response
        except LeaseLost:
            return framework.response(self.policy.under_way())
        if self._transaction is not None:
            reach("operation.completed")
            return response
        refused = self.end(claim, result)
        return response if refused is None else framework.response(refused)

    def _store_within(self, transaction: object, claim: Claim, result: Result) -> None:
        state = _state(result.status)
        if state is State.FAILED_RETRYABLE:
            raise _Undone
        store = _postgres(self.store)
        with self._counted.ended(state):
            store.within(
                cursor_of(transaction), claim, state, machine.fitting(store, policy.storable(result))
            )

    def end(self, claim: Claim, result: Result) -> Result | None:
        """Store what came of a claim; return what to answer instead, if somebody else has it by now."""
        state = _state(result.status)
        try:
            if state is State.FAILED_RETRYABLE:
                self._give_up(claim, result.status)
            else:
                self._counted.complete(self.store, claim, policy.storable(result), state)
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
        if status in STRANGER and claim.attempt == 1:
            self._counted.abandon(self.store, claim)
        else:
            self._counted.fail_for_now(self.store, claim)


idempotent = Idempotent


class _Undone(Exception):  # noqa: N818  rolls a transaction back
    """The endpoint has answered that it could not: its transaction is not to be committed."""


def marked(view: object) -> Idempotent | None:
    """Return what decorates an endpoint."""
    return getattr(view, _MARK, None)


def waiting(endpoint: Callable[..., Any], in_thread: InThread) -> Callable[..., Any]:
    """Return an endpoint that holds no thread while it waits for a twin; one with decorators above is as it was."""
    decorated, view = getattr(endpoint, _DECORATED, (None, None))
    operation = marked(endpoint)
    if decorated is not endpoint or view is None or operation is None or operation.has_transaction:
        return endpoint

    @functools.wraps(view)
    async def threaded(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  the view's
        return await in_thread(view, *args, **kwargs)

    return operation(threaded)


class Routed(Protocol):
    """A request that a route has in hand: the route ends what the decorated endpoint begins."""

    def call(self, operation: Idempotent, view: Callable[[], Any], arguments: Arguments, /) -> Any:  # noqa: ANN401
        """Return what the view gives, or the answer in its place."""
        ...

    async def call_async(
        self, operation: Idempotent, view: Callable[[], Awaitable[Any]], arguments: Arguments, /
    ) -> Any:  # noqa: ANN401  the view's
        """Return what the view gives, or the answer in its place."""
        ...


routed: ContextVar[Routed | None] = ContextVar("hookonce_routed", default=None)
"""The request that an `IdempotentRoute` has in hand."""


def _arguments_of(scope: Callable[..., Scope] | None) -> tuple[str, ...]:
    """Return the names of a scope's parameters after the request."""
    try:
        parameters = list(inspect.signature(scope).parameters.values()) if scope else []
    except (TypeError, ValueError):  # a builtin that has no signature
        return ()
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(each.name for each in parameters[1:] if each.kind in named)


def _state(status: int) -> State:
    if status < 400:  # noqa: PLR2004  where refusals begin
        return State.COMPLETED
    return State.FAILED_RETRYABLE if status in RETRYABLE or status >= 500 else State.FAILED_FINAL  # noqa: PLR2004


def _parts(scope: Scope) -> tuple[str, ...]:
    parts = scope if isinstance(scope, tuple) else (scope,)
    if not all(isinstance(part, str) for part in parts):
        raise TypeError(
            f"the scope of a key is {scope!r}; expected text or a tuple of texts, such as a tenant's id"
        )
    return parts


def _postgres(store: Store) -> PostgresStore | SealedStore:
    innermost = store.store if isinstance(store, SealedStore) else store
    if not isinstance(store, PostgresStore | SealedStore) or not isinstance(innermost, PostgresStore):
        raise TypeError(
            "a result can be stored in the transaction of the work only where PostgreSQL keeps the keys"
        )
    return store


def _sealing(store: Store) -> Store:
    """Return a store with its answers sealed by the configured keys, unless it has keys of its own."""
    return (
        store if isinstance(store, SealedStore) else SealedStore(store, encryption_keys.configured_keyring())
    )


@functools.cache
def _ledger() -> SealedStore:
    return SealedStore(PostgresStore.at(servers.ledger_url()), encryption_keys.configured_keyring())
