"""Actions: each is a function in a list, which its signature and its decorator describe.

    @action(scope=Scope.READ)
    def get_event(desk: Desk, which: EventPath) -> FullEvent: ...

`which` names the thing that is meant, `asked` is all else; both are models that read what people type, and the answer
is what is shown. Commands, the API, the tools of agents and the pages read, call and show; what is asked, and how it is
refused, is said here once. No HTTP, no terminal.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, get_type_hints

import psycopg

from hookonce.receiver.desk.models import RequestModel
from hookonce.receiver.desk.refusals import Forbidden
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.access.api_tokens import Scope, Token
from hookonce.receiver.ledger.rows import ResponseModel

if TYPE_CHECKING:  # a command that lists something starts in half the time without them
    from hookonce.receiver.config.settings import Settings
    from hookonce.receiver.intake.pipeline import Intake

A = TypeVar("A", bound="Answer")
LOCK_TIMEOUT = timedelta(seconds=10)
TIMEOUT = timedelta(minutes=5)


class Desk:
    """The context of an action: who asks, on which connection, and under which token if there is one.

    `configured` is the settings, or reads them once an action asks. `intake` takes test events in, where this process
    takes deliveries. `notifies_workers`: an action has made something due, of which workers are told once it is
    answered.
    """

    def __init__(
        self,
        configured: "Settings | Callable[[], Settings]",
        connection: psycopg.Connection,
        who: str,
        token: Token | None = None,
        intake: "Intake | None" = None,
    ) -> None:
        self._configured = configured
        self.connection = connection
        self.who = who
        self.token = token
        self.intake = intake
        self.notifies_workers = False

    @property
    def settings(self) -> "Settings":
        """The configuration. Raises: `ConfigError`."""
        if callable(self._configured):
            self._configured = self._configured()
        return self._configured

    def ask(self, action: "Action[A]", /, **models: RequestModel) -> "A":
        """Do an action here. Raises: `Refused`, and what the ledger raises."""
        return action(self, **models)

    def note(self, action: str, subject: str, detail: Mapping[str, Any] | None = None) -> int:
        """Write a line of the audit, of who asks; return its id."""
        return audit_log.note(self.connection, self.who, action, subject, detail)

    def allows(self, scope: Scope) -> bool:
        """Whether who asks may do what needs a scope; without a token it is somebody who has the ledger itself."""
        return self.token is None or self.token.allows(scope)

    def require(self, scope: Scope | None) -> None:
        """Raise `Forbidden` unless who asks may do what needs a scope."""
        if self.token and scope and not self.token.allows(scope):
            raise Forbidden.of(self.token.name, scope)


@dataclass(frozen=True, slots=True)
class Octets:
    """A body as it was delivered, to be saved as a file and never shown by a browser."""

    name: str
    body: bytes


Answer = ResponseModel | Octets | None
A_co = TypeVar("A_co", bound=Answer, covariant=True)


@dataclass(frozen=True)
class Action(Generic[A_co]):
    """One thing to ask or do. Without a scope any token will do; `plan_scope`, if any, is enough for a plan of it.

    `inputs` are the models of `which` and `asked`. `changes`: something is another than before, once it is done;
    `looks` finds out what is shown before. `is_atomic`: all that it does, it does in one transaction of the ledger.
    """

    name: str
    scope: Scope | None
    function: Callable[..., A_co]
    inputs: Mapping[str, type[RequestModel]]
    answer: type[ResponseModel] | type[Octets] | None
    changes: bool
    is_atomic: bool
    plan_scope: Scope | None
    looks: "Look | None" = None

    def __call__(self, desk: Desk, **models: RequestModel) -> A_co:
        """Do it. Raises: `Refused`, and what the ledger raises."""
        self.require(desk, is_plan=getattr(models.get("asked"), "dry_run", False))
        for each in models.values():
            each.require_span()
        return self.function(desk, **models)

    def require(self, desk: Desk, *, is_plan: bool) -> None:
        """Refuse a token that may not do it, nor plan it where no more is asked. Raises: `Forbidden`."""
        if not (is_plan and self.plan_scope and desk.allows(self.plan_scope)):
            desk.require(self.scope)

    def plan(self, here: "Asks", **models: RequestModel) -> "Plan":
        """Say what it would do, and what to ask for so that it does no more than that; nothing is changed."""
        if self.looks:
            return self.looks(here, **models)
        asked = models.get("asked")
        if asked is not None and "dry_run" in type(asked).model_fields:
            return Plan(
                here.ask(self, **models | {"asked": asked.model_copy(update={"dry_run": True})}), models
            )
        return Plan(None, models)

    @property
    def timeout(self) -> timedelta:
        """How long each of its statements may take."""
        return LOCK_TIMEOUT if self.is_atomic else TIMEOUT

    @property
    def about(self) -> str:
        """The function's docstring: a line, and what else there is to say."""
        return inspect.getdoc(self.function) or ""


class Asks(Protocol):
    """A desk that is asked, here or elsewhere."""

    def ask(self, action: Action[A], /, **models: RequestModel) -> A:
        """Return the answer. Raises: `Refused`, and what stands between the two."""


class Plan(NamedTuple):
    """A preview of an action, if there is one, and the models that it is asked by once somebody agrees."""

    shown: "Answer"
    models: Mapping[str, RequestModel]


Look = Callable[..., Plan]
"""Finds out, of an inbox and for the models that it is asked by, what there is to say before something is done.

Raises: `Refused` where it would not be done.
"""


def looks_at(reads: Action[Any], require: Callable[..., object] = lambda *_, **__: None) -> Look:
    """Return what shows the thing that is named, by an action that reads it: what is not there is refused by that.

    In the rows of a listing `require` looks for the thing, and refuses what is not there.
    """

    def look(here: Asks, which: RequestModel, **asked: RequestModel) -> Plan:
        models = {"which": which, **asked}
        shown = here.ask(reads, **({"which": which} if "which" in reads.inputs else {}))
        require(getattr(shown, "data", ()), **models)
        return Plan(shown, models)

    return look


ACTIONS: dict[str, Action[Any]] = {}
"""All of them by name, once `receiver.desk.actions` is imported."""


def action(
    *,
    scope: Scope | None,
    plan_scope: Scope | None = None,
    looks: Look | None = None,
    is_atomic: bool = True,
    changes: bool = True,
) -> Callable[[Callable[..., A]], Action[A]]:
    """Make an action of a function, and list it; see `Action`. What is not atomic may take long.

    An action with another scope than to read `changes` something, unless it only costs too much.
    """

    def made(function: Callable[..., A]) -> Action[A]:
        hints: dict[str, Any] = get_type_hints(function)
        answer = hints.pop("return")
        found = ACTIONS[function.__name__] = Action(
            function.__name__,
            scope,
            function,
            {role: hints[role] for role in ("which", "asked") if role in hints},
            None if answer is type(None) else answer,
            changes and scope in {Scope.REPLAY, Scope.ADMIN},
            is_atomic,
            plan_scope,
            looks,
        )
        return found

    return made
