"""`hookonce events show`: one event in full."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import click

from hookonce.providers import Delivery
from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.registry import load
from hookonce.receiver.cli.connections import at, configured
from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output import event_page
from hookonce.receiver.cli.output.printing import page
from hookonce.receiver.cli.output.tables import document_body, print_json
from hookonce.receiver.desk.events import (
    EventPath,
    FullEvent,
    OtherBodyPath,
    get_event,
    get_event_body,
    get_other_body,
)
from hookonce.receiver.desk.registry import Asks


@click.command(epilog=examples("hookonce events show 12", "hookonce events show evt_1Nxy --body"))
@click.argument("reference", metavar="ID", shell_complete=completion_types.EVENTS)
@click.option("--body", "with_body", is_flag=True, help="Show what was delivered, too: headers and body.")
@click.option("--raw", is_flag=True, help="Write the body to stdout, byte for byte, and nothing else.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; `data` is what handlers get.")
def show(reference: str, *, with_body: bool, raw: bool, as_json: bool) -> None:
    """Show an event, and why its runs failed: the error last.

    ID is the ledger id, source:event_id, or how a sender's id begins.
    """
    with desk() as here:
        which = asking(EventPath, event=reference)
        if raw:
            click.echo(here.ask(get_event_body, which=which).body, nl=False)
            return
        found = here.ask(get_event, which=which)
        body = here.ask(get_event_body, which=which).body if _has_body(found, with_body or as_json) else None
        if as_json:
            print_json(_document(here, found, body))
            return
    page("\n".join(event_page.lines(found, datetime.now(UTC), body)))


def _has_body(found: FullEvent, is_wanted: bool) -> bool:  # noqa: FBT001  a condition
    return is_wanted and found.headers is not None and found.unreadable is None


def _document(here: Asks, found: FullEvent, body: bytes | None) -> dict[str, Any]:
    said = found.model_dump(exclude={"bytes", "why_no_body"})
    for conflict in said["conflicts"]:
        which = asking(OtherBodyPath, event=str(found.id), body=conflict["id"])
        other = b"" if conflict["unreadable"] else here.ask(get_other_body, which=which).body
        conflict |= {"body": None, **document_body("body", other)}
        del conflict["bytes"]
    return said | document_body("body", body) | {"data": None if body is None else _data(found, body)}


def _data(found: FullEvent, body: bytes) -> Any:  # noqa: ANN401  whatever the sender sent
    """Return the payload as handlers get it; None where it can't be read."""
    provider = None if found.is_element else _provider(found)
    try:
        if provider is None:
            return json.loads(body)
        return provider.events(Delivery(provider.methods[0], found.url or "", found.headers or {}, body))[
            0
        ].data
    except Exception:  # noqa: BLE001  a provider of somebody's own, maybe
        return None


def _provider(found: FullEvent) -> Provider | None:
    """Return who reads the event: its source's provider, or of another inbox the one of that name."""
    if at():
        with suppress(LookupError, ValueError):
            return load(found.provider)
        return None
    source = configured().sources.get(found.source)
    return source.provider if source else None
