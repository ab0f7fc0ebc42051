"""`hookonce sources` and `hookonce providers`: who may send, and who could. No secret is ever printed."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click
import psycopg

from hookonce.providers.kit import registry
from hookonce.receiver.cli import local_sources
from hookonce.receiver.cli.connections import configured, ledger
from hookonce.receiver.cli.output.tables import cell, print_json, show
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger import handshake_secrets, pauses
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.ledger.database.schema_version import SchemaBehind
from hookonce.receiver.ledger.stats import totals
from hookonce.receiver.source import Source

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")


@dataclass(frozen=True)
class _Known:
    """What the ledger knows of sources; `used`: source → slot → how often, and when last."""

    paused: AbstractSet[str]
    handed: AbstractSet[str]
    used: Mapping[str, Mapping[int, tuple[int, datetime]]]


@click.group()
def sources() -> None:
    """List the configured sources."""


@sources.command("list")
@_JSON
def list_sources(*, as_json: bool) -> None:
    """List sources with their URLs, and how often each secret was used.

    A URL begins with public_url, or where none is configured with the address of this machine.

    Secrets are numbered in the configuration's order, and used by verifying a delivery. What the ledger knows
    is left open while the database is away.
    """
    settings = configured()
    known = _known(settings)
    listed = sorted(local_sources.sources(settings).items())
    documents: list[dict[str, Any]] = [
        {
            "name": name,
            "provider": source.provider.name,
            "url": f"{source.public_url or local_sources.base_url(settings)}/hooks/{name}",
            "secrets": _slots(source, known),
            "handed_out": None if known is None else name in known.handed,
            "repeats": source.repeats,
            "paused": None if known is None else name in known.paused,
        }
        for name, source in listed
    ]
    if as_json:
        for document in documents:
            print_json(document)
        return
    rows = [{**d, "secrets": _describe_slots(d["secrets"])} for d in documents]
    show(
        ("name", "provider", "url", "secrets", "handed out", "repeats", "paused"),
        [list(row.values()) for row in rows],
        empty="no source is configured; add [sources.stripe] to hookonce.toml, as `hookonce init` does",
    )


@click.group()
def providers() -> None:
    """List the senders there is a module for."""


@providers.command("list")
@_JSON
def list_providers(*, as_json: bool) -> None:
    """List providers with a line on each. Those of [receiver] providers and installed ones are among them."""
    listed = registry.listing(configured().provider_places)
    if as_json:
        for one in listed:
            print_json({"name": one.name, "summary": one.summary, "origin": one.origin})
        return
    show(("name", "summary"), [(one.name, one.summary) for one in listed])


def _slots(source: Source, known: _Known | None) -> list[dict[str, Any]]:
    """Return how often each secret of a source verified a delivery, also for a place that once had one.

    None where that is not known: without the database, and of a secret that is the only one.
    """
    used = {} if known is None else known.used.get(source.name, {})
    slots = sorted({*range(1, len(source.secrets) + 1), *used})
    uncounted = (None if known is None or len(slots) == 1 else 0, None)
    return [
        {"slot": slot, "count": count, "last_used": last}
        for slot in slots
        for count, last in (used.get(slot, uncounted),)
    ]


def _describe_slots(slots: list[dict[str, Any]]) -> str:
    parts = [
        f"{each['slot']}: {each['count']} times"
        + (f", last {cell(each['last_used'])}" if each["count"] else "")
        for each in slots
        if each["count"] is not None
    ]
    return "; ".join(parts) or str(len(slots))


def _known(settings: Settings) -> _Known | None:
    try:
        with ledger(settings) as connection:
            return _Known(
                paused=pauses.sources(connection),
                handed={one.source for one in handshake_secrets.all_kept(connection)},
                used=totals.secrets(connection),
            )
    except (psycopg.Error, LedgerUnavailable, SchemaBehind, ConfigError):
        return None
