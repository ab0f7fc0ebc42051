"""The handlers of `[commands.NAME]`: each takes the events that are its commands, and nothing else."""

from collections.abc import Mapping
from importlib import import_module

from hookonce.jobs.command_models import Models
from hookonce.jobs.handlers import DEFAULT_BACKOFF, Handler, HandlerError, Registry
from hookonce.jobs.registration import import_handlers
from hookonce.receiver.config.commands import Command


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
            models.around(function),
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
