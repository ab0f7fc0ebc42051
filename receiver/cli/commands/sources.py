"""`hookonce sources` and `hookonce providers`: who may send, and who could. No secret is ever printed."""

from collections.abc import Sequence
from typing import Any

import click

from hookonce.receiver.cli import local_sources
from hookonce.receiver.cli.action_command import done, facts_of
from hookonce.receiver.cli.connections import UNREACHABLE, at, configured
from hookonce.receiver.cli.desk import desk, own_desk
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import cell, clean, listed, print_json, show
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.cli.output.words import counted
from hookonce.receiver.desk.registry import Desk
from hookonce.receiver.desk.sources import (
    ProviderModel,
    SourceModel,
    forget_handed_secret,
    get_source,
    list_handed_secrets,
    listed_providers,
    opened_secrets,
)
from hookonce.receiver.desk.sources import list_providers as list_providers_
from hookonce.receiver.desk.sources import list_sources as list_sources_
from hookonce.receiver.samples.evidence import evidence
from hookonce.receiver.source import Source

_COLUMNS = {
    **{name: name for name in ("name", "url")},
    "last delivery": "last_delivery_at",
    "secrets": "secrets",
    "provider": "provider",
    "paused": "is_paused",
    "missing": "missing",
    "handed out": "has_handed_out_secret",
    "repeats": "repeats",
}
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")


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
    documents = _documents()
    if as_json:
        for document in documents:
            print_json(document)
        return
    notes = [(document["name"], note) for document in documents for note in document["secret_notes"]]
    for document in documents:
        for each in document["subscriptions"]:
            until = cell(each["expires_at"]) if each["expires_at"] else "not made yet"
            notes.append((document["name"], f"subscription {each['resource']}: until {until}"))
    for document in documents:
        document["secrets"] = _describe_slots(document["secrets"])
        document["last_delivery_at"] = ago(document["last_delivery_at"])
    show(
        list(_COLUMNS),
        [[document[name] for name in _COLUMNS.values()] for document in documents],
        empty="no source is configured; add [sources.stripe] to hookonce.toml, as `hookonce init` does",
    )
    for name, note in notes:
        tell(f"source '{name}': {clean(note)}")


sources.add_command(facts_of(get_source, name="show"))


@sources.group()
def secrets() -> None:
    """List and delete secrets received in handshakes."""


@secrets.command("list")
@click.option("--show", "is_shown", is_flag=True, help="Print the secrets themselves.")
@_JSON
def list_secrets(*, is_shown: bool, as_json: bool) -> None:
    """List handed-out secrets.

    One is `in use` where the source has no configured secret. To keep one for good, put it into the
    configuration: in use or not, it was the first to come, and anyone who knows the URL could have sent it.
    """
    with own_desk() if is_shown else desk() as here:  # secrets leave no machine but that of the ledger
        found = here.ask(list_handed_secrets).data
        opened = opened_secrets(here) if is_shown and isinstance(here, Desk) else {}
    if as_json:
        for one in found:
            print_json(one.model_dump() | {"secret": opened.get(one.source)})
        return
    hidden = "(sealed with a key that is not here)" if is_shown else "(--show)"
    show(
        ("source", "handed at", "in use", "secret"),
        [[one.source, one.handed_at, one.is_in_use, opened.get(one.source) or hidden] for one in found],
        empty="no sender has handed out a secret that is kept",
    )


secrets.add_command(
    done(
        forget_handed_secret,
        "forgot the secret of {source}; the next one that is handed out is kept",
        name="forget",
        about="Forget the secret that SOURCE was handed. Its sender may then hand out another. Audited.",
    )
)


@click.group()
def providers() -> None:
    """List the senders there is a module for."""


@providers.command("list")
@_JSON
def list_providers(*, as_json: bool) -> None:
    """List providers with a line on each. Those of [receiver] providers and installed ones are among them."""
    rows = [(one.name, evidence().get(one.name, ""), one.summary) for one in _providers()]
    listed(("name", "evidence", "summary"), rows, as_json=as_json)


def _providers() -> Sequence[ProviderModel]:
    if at():
        with desk() as here:
            return here.ask(list_providers_).data
    return listed_providers(configured())  # what there is a module for needs no ledger


def _describe_slots(slots: list[dict[str, Any]]) -> str:
    parts = [
        f"{each['slot']}: used {counted(each['count'], 'time')}"
        + (f", last {cell(each['last_used'])}" if each["count"] else "")
        for each in slots
        if each["count"] is not None
    ]
    return "; ".join(parts) or str(len(slots))


def _documents() -> list[dict[str, Any]]:
    """Return the sources; while the database is away, what the configuration says of them."""
    try:
        with desk() as here:
            found = [each.model_dump() for each in here.ask(list_sources_).data]
    except UNREACHABLE:
        found = [_as_configured(each) for _, each in sorted(local_sources.sources(configured()).items())]
    base = _profile_url() if at() else local_sources.base_url(configured())
    return [each | {"url": base * each["url"].startswith("/") + each["url"]} for each in found]


def _profile_url() -> str:
    from hookonce.receiver.remote import profiles  # few commands go elsewhere

    return profiles.find(at() or "").url.rstrip("/")


def _as_configured(source: Source) -> dict[str, Any]:
    """Return what the configuration says of a source: what the ledger knows besides is open."""
    slots = range(1, len(source.secrets) + 1)
    return dict.fromkeys(SourceModel.model_fields) | {
        "name": source.name,
        "provider": source.provider.name,
        "url": source.shown_url,
        "secrets": [{"slot": slot, "count": None, "last_used": None} for slot in slots],
        "secret_notes": source.secret_notes,
        "repeats": source.repeats,
        "conflicts": source.conflicts,
        "subscriptions": [],
    }
