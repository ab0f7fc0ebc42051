"""`hookonce pause` and `hookonce resume`: deliveries are taken in all the same, runs wait."""

from difflib import get_close_matches

import click
import psycopg

from hookonce.receiver.cli import local_sources
from hookonce.receiver.cli.connections import configured, ledger, notify_workers, operator
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.errors import NotFound
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.config.suggestions import did_you_mean
from hookonce.receiver.ledger import pauses, reasons
from hookonce.receiver.ledger.reasons import HANDLER, SOURCE

_IS_A_TYPO = 0.8
"""From which likeness on, by difflib, a name is taken for another that was mistyped."""
_KIND = click.option(
    "--kind", type=click.Choice(tuple(reasons.PAUSES)), help="What NAME is, where it could be both."
)


@click.command(epilog=examples("hookonce pause stripe", "hookonce pause handlers.credit"))
@click.argument("name", shell_complete=completion_types.PAUSABLE)
@_KIND
def pause(name: str, kind: str | None) -> None:
    """Let the runs of a source, or of a handler, wait until `hookonce resume`. Deliveries are still taken in."""
    settings = configured()
    with ledger(settings) as connection:
        kind = kind_of(connection, settings, name, kind)
        changed = pauses.pause(connection, kind, name, operator())
    click.echo(f"{kind} {clean(name)} is paused{'' if changed else ' already'}", err=True)


@click.command()
@click.argument("name", shell_complete=completion_types.PAUSABLE)
@_KIND
def resume(name: str, kind: str | None) -> None:
    """Go on with a paused source or handler: what waited is due at once, retries included."""
    settings = configured()
    with ledger(settings) as connection:
        paused = [each.kind for each in pauses.paused(connection) if each.name == name]
        kind = kind or (paused[0] if len(paused) == 1 else kind_of(connection, settings, name, None))
        changed = pauses.resume(connection, kind, name, operator())
    notify_workers(settings)
    click.echo(f"{kind} {clean(name)} {'goes on' if changed else 'was not paused'}", err=True)


def kind_of(connection: psycopg.Connection, settings: Settings, name: str, kind: str | None) -> str:
    """Return of which kind a name is; `kind` settles it. Raises: `NotFound`.

    A handler may be paused before it has run: a dotted name that resembles none is taken at its word, with a warning,
    and with `--kind handler` any name is.
    """
    known_sources = local_sources.sources(settings)
    of_rows = [each for each in reasons.OF_ROWS if kind in {None, each.kind}]
    for each in of_rows:
        if each.may_be(name, known_sources):
            return each.kind
    known = pauses.handlers(connection)
    is_for_handler = kind in {None, HANDLER.kind}
    if is_for_handler and name in known:
        return HANDLER.kind
    looks_like = get_close_matches(name, known, n=1, cutoff=_IS_A_TYPO)
    sources = {source for each in of_rows if (source := each.source_of(name))}
    is_new_handler = kind == HANDLER.kind or (kind is None and "." in name and sources <= {name})
    if kind is None and is_new_handler and looks_like:
        hint = f"; did you mean '{looks_like[0]}'? (`--kind handler` takes any name)"
        raise NotFound(f"no handler is called {name!r}{hint}")
    if not is_new_handler:
        what = SOURCE.kind if kind or sources - {name} else "source or handler"
        asked = next(iter(sources - {name}), name)
        names = list(known_sources) + ([] if kind else known)
        raise NotFound(f"no {what} is called {asked!r}{did_you_mean(asked, names)}")
    hint = clean(did_you_mean(name, known)) if known else ""
    click.echo(
        f"no worker has named handler {clean(name)}, nor did it run; taken at your word{hint}", err=True
    )
    return HANDLER.kind
