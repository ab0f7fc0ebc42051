"""`hookonce pause` and `hookonce resume`: deliveries are taken in all the same, runs wait."""

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

import click

from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.cli.plans import DRY_RUN, carried_out
from hookonce.receiver.config.suggestions import did_you_mean, no_source
from hookonce.receiver.desk.models import Listed
from hookonce.receiver.desk.pauses import (
    HANDLER,
    OF_ROWS,
    PAUSES,
    Pause,
    PausePath,
    list_handlers,
    list_pauses,
)
from hookonce.receiver.desk.pauses import pause as pause_action
from hookonce.receiver.desk.pauses import resume as resume_action
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.desk.registry import Asks
from hookonce.receiver.desk.sources import list_sources

_IS_A_TYPO = 0.8
"""From which likeness on, by difflib, a name is taken for another that was mistyped."""
_KIND = click.option("--kind", type=click.Choice(tuple(PAUSES)), help="Kind of NAME, if it could be both.")


@click.command(epilog=examples("hookonce pause stripe", "hookonce pause handlers.credit"))
@click.argument("name", shell_complete=completion_types.PAUSABLE)
@_KIND
@DRY_RUN
def pause(name: str, kind: str | None, *, dry_run: bool) -> None:
    """Let the runs of a source, or of a handler, wait until `hookonce resume`. Deliveries are still taken in."""
    with desk() as here:
        which = asking(PausePath, kind=kind_of(here, name, kind), name=name)
        carried_out(here, pause_action, _showing(which, "is paused"), dry_run=dry_run, which=which)


@click.command()
@click.argument("name", shell_complete=completion_types.PAUSABLE)
@_KIND
@DRY_RUN
def resume(name: str, kind: str | None, *, dry_run: bool) -> None:
    """Continue a paused source or handler: what waited is due at once, retries included."""
    with desk() as here:
        paused = [each.kind for each in here.ask(list_pauses).data if each.name == name]
        kind = kind or (paused[0] if len(paused) == 1 else kind_of(here, name, None))
        which = asking(PausePath, kind=kind, name=name)
        carried_out(here, resume_action, _showing(which, "goes on"), dry_run=dry_run, which=which)


def _showing(which: PausePath, said: str) -> Callable[[Any], None]:
    def show(found: Listed[Pause] | Pause | None) -> None:
        if isinstance(found, Listed):
            names = ", ".join(f"{each.kind} {clean(each.name)}" for each in found.data)
            tell(f"paused already: {names or 'nothing'}")
        else:
            tell(f"{which.kind} {clean(which.name)} {said}")

    return show


def kind_of(here: Asks, name: str, kind: str | None) -> str:
    """Return of which kind a name is; `kind` settles it. Raises: `NotFound`.

    A handler may be paused before it has run: a dotted name that resembles none is taken at its word, with a warning,
    and with `--kind handler` any name is.
    """
    if kind not in {None, HANDLER.kind}:
        return str(kind)
    known_sources = {each.name for each in here.ask(list_sources).data}
    of_rows = [each for each in OF_ROWS if kind is None]
    for each in of_rows:
        if each.may_be(name, known_sources):
            return each.kind
    known = [each.name for each in here.ask(list_handlers).data]
    if name in known:
        return HANDLER.kind
    looks_like = get_close_matches(name, known, n=1, cutoff=_IS_A_TYPO)
    sources = {source for each in of_rows if (source := each.source_of(name))}
    is_new_handler = kind == HANDLER.kind or (kind is None and "." in name and sources <= {name})
    if kind is None and is_new_handler and looks_like:
        hint = f"; did you mean '{looks_like[0]}'? (`--kind handler` takes any name)"
        raise NotFound(f"no handler is called {name!r}{hint}")
    if not is_new_handler:
        asked = next(iter(sources - {name}), name)
        if asked != name:
            raise NotFound(no_source(asked, known_sources))
        raise NotFound(
            f"no source or handler is called {name!r}{did_you_mean(name, [*known_sources, *known])}"
        )
    hint = clean(did_you_mean(name, known)) if known else ""
    tell(
        f"no worker has registered handler {clean(name)}, and it has not run; it is paused by this name{hint}"
    )
    return HANDLER.kind
