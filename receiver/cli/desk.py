"""The desk as a command asks it: on this machine's ledger, or with `hookonce --at` at another inbox by its API."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import click
import psycopg
from pydantic import ValidationError

from hookonce.receiver.cli.connections import at, configured, ledger, notify_workers, operator
from hookonce.receiver.desk.models import PAGE_SIZE, RequestModel, mistakes
from hookonce.receiver.desk.registry import Action, Answer, Asks, Desk

if TYPE_CHECKING:
    from hookonce.receiver.config.settings import Settings
    from hookonce.receiver.intake.pipeline import Intake

A = TypeVar("A", bound=Answer)
M = TypeVar("M", bound=RequestModel)


class LocalDesk(Desk):
    """The desk on a connection to the ledger, for the user who runs the command; configured once an action asks."""

    def __init__(
        self,
        connection: psycopg.Connection,
        settings: "Settings | None" = None,
        intake: "Intake | None" = None,
    ) -> None:
        super().__init__(settings or _known, connection, operator(), intake=intake)

    def ask(self, action: Action[A], /, **models: RequestModel) -> A:
        """Return the answer, and notify the workers if there is something to do. Raises: `Refused`."""
        answer = super().ask(action, **models)
        self.notify()
        return answer

    def notify(self) -> None:
        """Notify the workers of what an action, or a function of the desk, has made due."""
        if self.notifies_workers:
            self.notifies_workers = False
            notify_workers(self.settings)


@contextmanager
def own_desk(settings: "Settings | None" = None) -> Iterator[LocalDesk]:
    """Give the desk of this machine's ledger, for what no other inbox is asked. Raises: as `ledger`."""
    with ledger(settings) as connection:
        here = LocalDesk(connection, settings)
        yield here
        here.notify()


@contextmanager
def desk(*, takes_in: bool = False, patience: timedelta | None = None) -> Iterator[Asks]:
    """Give the desk that this command asks; here it `takes_in` events only if that is said.

    Raises: as `ledger`, or what keeps another inbox from being asked.
    """
    if named := at():
        from hookonce.receiver.api.remote_desk import RemoteDesk  # few commands go elsewhere
        from hookonce.receiver.remote import profiles
        from hookonce.receiver.remote.client import Client

        yield RemoteDesk(Client(profiles.find(named)))
        return
    with ledger(patience=patience) as connection, ExitStack() as stack:
        intake = None
        if takes_in:
            from hookonce.receiver.config.settings import require_servers
            from hookonce.receiver.intake.pipeline import Intake  # few commands take events in

            settings = configured()
            require_servers(settings)
            intake = stack.enter_context(closing(Intake(settings)))
        yield LocalDesk(connection, intake=intake)


def _known() -> "Settings":
    """Read the configuration, with the sources that `hookonce dev` made up."""
    from hookonce.receiver.cli import local_sources  # a listing does without, and starts twice as fast

    settings = configured()
    return replace(settings, sources=local_sources.sources(settings))


def asking(model: type[M], **given: object) -> M:
    """Return a model of what was typed. Raises: `click.UsageError` with what is wrong with it."""
    try:
        return model(**given)
    except ValidationError as error:
        place, said = mistakes(error, model)[0]
        raise click.UsageError(f"{_typed_as(str(place[0]))}: {said}" if place else said) from None


def _typed_as(field: str) -> str:
    """Return what a field is called on this command's line."""
    context = click.get_current_context(silent=True)
    options = [each for each in context.command.params if isinstance(each, click.Option)] if context else []
    return next((each.opts[0] for each in options if each.name == field), field)


def asked_of(action: Action[Any], given: Mapping[str, Any]) -> dict[str, RequestModel]:
    """Return the models of an action, of what was typed by the names of its fields. Raises: `click.UsageError`."""
    values = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in given.items()
        if value is not None
    }
    return {
        role: asking(model, **{name: values[name] for name in model.model_fields if name in values})
        for role, model in action.inputs.items()
    }


def pages(here: Asks, action: Action[Any], given: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the pages of a listing, with `limit` rows at most; 0 gives all."""
    limit = left = given.get("limit", 0)
    cursor = None
    while True:
        size = min(left, PAGE_SIZE) if limit else PAGE_SIZE
        page = here.ask(action, **asked_of(action, {**given, "limit": size, "cursor": cursor}))
        yield page
        left -= len(page.data)
        cursor = getattr(page, "next", None)
        if cursor is None or (limit and left <= 0):
            return
