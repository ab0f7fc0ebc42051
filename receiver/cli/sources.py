"""`hookonce sources` and `hookonce providers`: who may send, and who could. No secret is ever printed."""

import click
import psycopg

from providers.kit import registry
from receiver.cli import local
from receiver.cli.servers import configured, ledger
from receiver.cli.tables import print_json, show
from receiver.database import LedgerUnavailable
from receiver.health import SchemaBehind
from receiver.ledger import desk_pause
from receiver.settings import ConfigError, Settings

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")


@click.group()
def sources() -> None:
    """List the configured sources."""


@sources.command("list")
@_JSON
def list_sources(*, as_json: bool) -> None:
    """List sources with their URLs; `paused` is unknown while the database is away."""
    settings = configured()
    paused = _paused(settings)
    documents = [
        {
            "name": name,
            "provider": source.provider.name,
            "url": f"{source.public_url}/hooks/{name}",
            "secrets": len(source.secrets),
            "repeats": source.repeats,
            "paused": None if paused is None else name in paused,
        }
        for name, source in sorted(local.sources(settings).items())
    ]
    if as_json:
        for document in documents:
            print_json(document)
        return
    show(("name", "provider", "url", "secrets", "repeats", "paused"), [list(d.values()) for d in documents])
    if not documents:
        click.echo("no source is configured; add [sources.stripe] to hookonce.toml, see the README", err=True)


@click.group()
def providers() -> None:
    """List the senders there is a module for."""


@providers.command("list")
@_JSON
def list_providers(*, as_json: bool) -> None:
    """List providers with a line on each; those of [receiver] providers and installed ones are among them."""
    listed = registry.listing(configured().provider_places)
    if as_json:
        for one in listed:
            print_json({"name": one.name, "summary": one.summary, "origin": one.origin})
        return
    show(("name", "summary"), [(one.name, one.summary) for one in listed])


def _paused(settings: Settings) -> set[str] | None:
    try:
        with ledger(settings) as connection:
            return {name for kind, name in desk_pause.paused(connection) if kind == "source"}
    except (psycopg.Error, LedgerUnavailable, SchemaBehind, ConfigError):
        return None
