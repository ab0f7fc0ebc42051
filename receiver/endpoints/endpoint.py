"""`hookonce.idempotent`: people's own endpoints and functions, done once per key.

A response that is returned is an answer, and given again: 2xx, 3xx, and 4xx as a refusal for good. An exception is
none, nor are 401, 403, 408, 425, 429 and 5xx: then the same request may be tried again, and no other under its key.
401 and 403 say that a stranger asked: a first attempt that ends so gives the key back, since it is the owner's.
"""

import functools
import inspect
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from hookonce.receiver.endpoints import stores
from hookonce.receiver.endpoints.attempt import Operation
from hookonce.receiver.endpoints.exchange import Arguments, Exchange, Scope, Transaction, scope_parts
from hookonce.receiver.endpoints.frameworks.detection import framework_of
from hookonce.receiver.endpoints.policy import Dialect, Policy
from hookonce.receiver.idempotency.counted import Counted
from hookonce.receiver.idempotency.fingerprint import Request
from hookonce.receiver.idempotency.records import Key, Store, Terms, scope_of

_MARK = "__hookonce_idempotent__"
_DECORATED = "__hookonce_decorated__"
"""The function that is decorated here, beside its decorated self: a decorator above this one has a copy of both."""

P = ParamSpec("P")
R = TypeVar("R")
InThread = Callable[..., Awaitable[Any]]
"""Calls a function in a thread, and awaits what it gives."""


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
        if store is not None and store.loses and moves_money is not False:
            raise ValueError(
                f"the operation '{name}' can't keep its keys here: {store.loses}. Use PostgreSQL or DynamoDB, or say "
                "moves_money=False if doing it twice costs nobody anything"
            )
        if transaction is not None and store is not None:
            stores.transactional(store)
        self._store = store
        self._ready: Store | None = None
        self.exchange = Exchange(
            name,
            lambda: self.store,
            Counted(name),
            Policy.read(in_progress or ("409" if dialect == "ietf" else "202"), dialect),
            Terms(lease, retention),
            scope,
            _arguments_of(scope),
            required,
            tuple(headers),
            version,
            transaction,
        )

    @property
    def store(self) -> Store:
        """The store of the records, their answers sealed if there are `encryption_keys`; found when it is first needed.

        Raises: `ConfigError`.
        """
        if self._ready is None:
            self._ready = stores.in_ledger() if self._store is None else stores.sealed(self._store)
        return self._ready

    def __call__(self, view: Callable[P, R]) -> Callable[P, R]:
        """Decorate an endpoint of Flask or Django, or one of FastAPI whose route is an `IdempotentRoute`."""
        if inspect.iscoroutinefunction(view):
            if self.exchange.transaction is not None:
                raise TypeError(f"{view.__name__}: transaction= needs a function that is not async")

            @functools.wraps(view)
            async def wrapped_async(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  the view's
                work = functools.partial(view, *args, **kwargs)
                if (served := routed.get()) is not None:
                    return await served.call_async(self, work, kwargs)
                framework, request = framework_of(args)
                return await self.exchange.serve_async(framework, request, kwargs, work)

            wrapper: Any = wrapped_async
        else:

            @functools.wraps(view)
            def wrapped(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  the view's
                work = functools.partial(view, *args, **kwargs)
                if (served := routed.get()) is not None:
                    return served.call(self, work, kwargs)
                framework, request = framework_of(args)
                return self.exchange.serve(framework, request, kwargs, work)

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
        exchange, counted = self.exchange, self.exchange.counted
        whose = Key(scope_of(exchange.name, *scope_parts(scope)), key)
        body = json.dumps(asked).encode()
        request = Request("", exchange.name, body, "application/json", version=exchange.version)
        begun = counted.begin(self.store, whose, request.fingerprint(), exchange.terms)
        operation = Operation(counted, self.store, whose, begun)
        if operation.claim is None:
            yield operation
            return
        try:
            yield operation
        except Exception:  # whatever ends it otherwise may come in the middle: its lease is to tell
            exchange.failed(operation.claim)
            raise
        if not operation.is_done:
            operation.complete()


idempotent = Idempotent


def marked(view: object) -> Idempotent | None:
    """Return what decorates an endpoint."""
    return getattr(view, _MARK, None)


def waiting(endpoint: Callable[..., Any], in_thread: InThread) -> Callable[..., Any]:
    """Return an endpoint that holds no thread while it waits for a twin; one with decorators above is as it was."""
    decorated, view = getattr(endpoint, _DECORATED, (None, None))
    operation = marked(endpoint)
    if (
        decorated is not endpoint
        or view is None
        or operation is None
        or operation.exchange.transaction is not None
    ):
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
