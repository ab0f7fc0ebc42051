"""What an operation of the API is: its signature says all that the dispatcher and the OpenAPI document need.

    @operation("GET", "/events/{event}", scope=Scope.READ)
    def get_event(call: Call, path: EventPath) -> EventShown: ...

The parameters `path`, `query` and `body` are models of what is asked, the return annotation is what is shown.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, get_type_hints

import psycopg

from hookonce.receiver.api.models import RequestModel, ResponseModel
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.ledger.access.api_tokens import Scope, Token

OPERATION_LOCK_TIMEOUT = timedelta(seconds=10)
OPERATION_TIMEOUT = timedelta(minutes=5)


@dataclass(slots=True)
class Call:
    """One request that is under way. The function adds `headers` to its answer.

    `notifies_workers`: workers are notified of new work once it is answered.
    """

    settings: Settings
    intake: Intake
    connection: psycopg.Connection
    token: Token
    headers: dict[str, str] = field(default_factory=dict)
    notifies_workers: bool = False

    @property
    def who(self) -> str:
        """Return who asks, for the audit."""
        return f"{self.token.name} (token)"


@dataclass(frozen=True, slots=True)
class Octets:
    """A body as it was delivered, to be saved as a file and never shown by a browser."""

    name: str
    body: bytes


Answer = ResponseModel | Octets | None


@dataclass(frozen=True)
class Operation:
    """One method of one path. Without a scope any token will do.

    `is_atomic`: all that it does, it does in one transaction of the ledger.
    """

    method: str
    path: str
    scope: Scope | None
    function: Callable[..., Answer]
    inputs: Mapping[str, type[RequestModel]]
    answer: type[ResponseModel] | type[Octets] | None
    status: int
    is_atomic: bool

    @property
    def name(self) -> str:
        """The function's name, which is the operation id."""
        return self.function.__name__

    @property
    def timeout(self) -> timedelta:
        """How long each of its statements may take."""
        return OPERATION_LOCK_TIMEOUT if self.is_atomic else OPERATION_TIMEOUT

    @property
    def about(self) -> str:
        """The function's docstring: a line, and what else there is to say."""
        return inspect.getdoc(self.function) or ""


def operation(
    method: str,
    path: str,
    *,
    scope: Scope | None,
    status: int = 200,
    is_atomic: bool = True,
) -> Callable[[Callable[..., Answer]], Operation]:
    """Make an operation of a function; see the module. What is not atomic (`Operation`) may take long."""

    def made(function: Callable[..., Answer]) -> Operation:
        hints: dict[str, Any] = get_type_hints(function)
        answer = hints.pop("return")
        inputs: dict[str, type[RequestModel]] = {
            role: hints[role] for role in ("path", "query", "body") if role in hints
        }
        return Operation(
            method,
            path,
            scope,
            function,
            inputs,
            None if answer is type(None) else answer,
            204 if answer is type(None) else status,
            is_atomic,
        )

    return made
