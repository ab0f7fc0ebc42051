"""`hookonce pause` and `hookonce resume`: deliveries are taken in all the same, runs wait."""

import click
import psycopg

from receiver.cli import completing, local
from receiver.cli.errors import NotFound
from receiver.cli.servers import configured, ledger, operator, ring
from receiver.cli.tables import clean
from receiver.ledger import desk_pause
from receiver.settings import Settings
from receiver.spelling import did_you_mean

_KIND = click.option(
    "--kind", type=click.Choice(("source", "handler")), help="What NAME is, where it could be both."
)


@click.command()
@click.argument("name", shell_complete=completing.PAUSABLE)
@_KIND
def pause(name: str, kind: str | None) -> None:
    """Let the runs of a source, or of a handler, wait until `hookonce resume`. Deliveries are still taken in."""
    settings = configured()
    with ledger(settings) as connection:
        kind = kind_of(connection, settings, name, kind)
        changed = desk_pause.pause(connection, kind, name, operator())
    click.echo(f"{kind} {clean(name)} is paused{'' if changed else ' already'}", err=True)


@click.command()
@click.argument("name", shell_complete=completing.PAUSABLE)
@_KIND
def resume(name: str, kind: str | None) -> None:
    """Go on with a paused source or handler: what waited is due at once, retries included."""
    settings = configured()
    with ledger(settings) as connection:
        paused = [each for each, paused_name in desk_pause.paused(connection) if paused_name == name]
        kind = kind or (paused[0] if len(paused) == 1 else kind_of(connection, settings, name, None))
        changed = desk_pause.resume(connection, kind, name, operator())
    ring(settings)
    click.echo(f"{kind} {clean(name)} {'goes on' if changed else 'was not paused'}", err=True)


def kind_of(connection: psycopg.Connection, settings: Settings, name: str, kind: str | None) -> str:
    """Tell whether a name is a source or a handler; `kind` settles it. Raises: `NotFound`.

    Handlers are the worker's and can't be asked for here, so a dotted name that has never run is taken at its
    word, with a warning.
    """
    known_sources = local.sources(settings)
    if kind != "handler" and name in known_sources:
        return "source"
    known = desk_pause.handlers(connection)
    if kind != "source" and name in known:
        return "handler"
    is_new_handler = kind == "handler" or (kind is None and "." in name)
    if not is_new_handler:
        what = "source" if kind else "source or handler"
        names = list(known_sources) + ([] if kind else known)
        raise NotFound(f"no {what} is called {name!r}{did_you_mean(name, names)}")
    hint = clean(did_you_mean(name, known)) if known else ""
    click.echo(f"no run of handler {clean(name)} is in the ledger; taken at your word{hint}", err=True)
    return "handler"
