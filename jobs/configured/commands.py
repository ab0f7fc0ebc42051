"""The handlers of `[commands.NAME]`: each takes the events that are its commands, and nothing else.

Its annotations may name pydantic models of what it takes and gives:

    def create_payment(event: Annotated[Any, Payment], tx: Connection) -> Paid: ...

`event.data` is a `Payment` then; a body that is none is refused (422, `invalid_body`), now and ever after. A `Paid`
that is returned is stored and answered as JSON. The description of commands has the schemas of both.
"""

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError

from hookonce.jobs.event import ReceivedEvent, Refusal
from hookonce.jobs.handlers import DEFAULT_BACKOFF, Handler, HandlerError, Registry
from hookonce.jobs.registration import import_handlers
from hookonce.receiver.config.commands import Command
from hookonce.receiver.redis import approximate

TAKES, GIVES = "takes", "gives"
_REF = "#/components/schemas/{command}.{role}.{{model}}"
_MAX_MISTAKES = 5


def register(registry: Registry, commands: Mapping[str, Command]) -> None:
    """Import the functions that do the commands and register them, each under its command's source.

    So a function may be renamed or moved: its runs stay its own. Raises `HandlerError`.
    """
    for command in commands.values():
        if registry.named(command.source) is not None:  # it was asked before
            continue
        module, _, name = command.handler.partition(":")
        import_handlers([module])
        function = getattr(import_module(module), name, None)
        if not callable(function):
            raise HandlerError(f"[commands.{command.name}] handler: '{module}' has no function '{name}'")
        models = Models.of(function)
        handler = Handler(
            command.source,
            command.source,
            "*",
            approximate.exact(models.around(function)),
            command.attempts,
            DEFAULT_BACKOFF,
            command.timeout,
            models=models.schemas(command.name),
        )
        try:
            _ = handler.signature
        except (TypeError, ValueError) as error:
            raise HandlerError(
                f"[commands.{command.name}] handler '{command.handler}' must take two arguments, (event, tx) or "
                f"(event, session): {error}"
            ) from None
        registry.add(handler)


@dataclass(frozen=True, slots=True)
class Models:
    """The models that a handler names; None where it names none."""

    takes: type[BaseModel] | None = None
    gives: type[BaseModel] | None = None

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "Models":
        """Read the annotations of a handler; what can't be evaluated names no model."""
        try:
            hints = get_type_hints(function, include_extras=True)
            first = next(iter(inspect.signature(function).parameters), "")
        except Exception:  # noqa: BLE001  imported for type checkers only, or whatever the text does
            return cls()
        named = hints.get(first)
        notes = get_args(named)[1:] if get_origin(named) is Annotated else ()
        return cls(
            next((note for note in notes if _is_model(note)), None),
            hints["return"] if _is_model(hints.get("return")) else None,
        )

    def schemas(self, command: str) -> str | None:
        """Return both as JSON Schema (`$defs` beside), for the components of the command's description."""
        made = {}
        if self.takes is not None:
            ref = _REF.format(command=command, role=TAKES)
            made[TAKES] = self.takes.model_json_schema(mode="validation", ref_template=ref)
        if self.gives is not None:
            ref = _REF.format(command=command, role=GIVES)
            made[GIVES] = self.gives.model_json_schema(mode="serialization", ref_template=ref)
        return json.dumps(made) if made else None

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a handler that gives `function` the model it takes, and makes JSON of the model it gives."""
        if self.takes is None and self.gives is None:
            return function
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(event: ReceivedEvent, second: object) -> object:
                self._read(event)
                return _plain(await function(event, second))

            return awaited

        @functools.wraps(function)
        def called(event: ReceivedEvent, second: object) -> object:
            self._read(event)
            return _plain(function(event, second))

        return called

    def _read(self, event: ReceivedEvent) -> None:
        if self.takes is None:
            return
        try:
            event.__dict__["data"] = self.takes.model_validate(event.data)
        except ValidationError as error:
            found = error.errors(include_input=False, include_url=False, include_context=False)[
                :_MAX_MISTAKES
            ]
            detail = "; ".join(
                f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}" for each in found
            )
            raise Refusal(422, "invalid_body", detail) from None


def _is_model(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel)


def _plain(result: object) -> object:
    return result.model_dump(mode="json") if isinstance(result, BaseModel) else result
