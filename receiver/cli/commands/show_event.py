"""`hookonce events show`: one event in full."""

import json
from base64 import b64decode
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
from hookonce.receiver.cli.output.tables import print_json
from hookonce.receiver.desk.events import EventPath, EventQuery, FullEvent, get_event, get_event_body


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
        asked = EventQuery(bodies=with_body or as_json)
        found = here.ask(get_event, which=which, asked=asked)
    body = _body(found)
    if as_json:
        data = None if body is None else _data(found, body)
        print_json(found.model_dump(exclude={"bytes", "why_no_body"}) | {"data": data})
        return
    page("\n".join(event_page.lines(found, datetime.now(UTC), body)))


def _body(found: FullEvent) -> bytes | None:
    if found.body_b64 is not None:
        return b64decode(found.body_b64)
    return None if found.body is None else found.body.encode()


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
