"""`hookonce waits`: runs that wait for another event (event.wait), and what is noted for them."""

import click

from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.event_options import AS_JSON
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean, print_json, show
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.desk.events import EventPath
from hookonce.receiver.desk.steps import WakeRequest, list_waits, wake


@click.group()
def waits() -> None:
    """List the runs that wait for another event, and have one go on without it."""


@waits.command("list")
@AS_JSON
def list_(*, as_json: bool) -> None:
    """List what waits, and since when.

    The wait that ends first stands first. An event that came before such events were noted ends no wait.
    """
    with desk() as here:
        found = here.ask(list_waits)
    if as_json:
        for each in found.data:
            print_json(each.model_dump())
        return
    columns = ("event", "handler", "wait", "for", "since", "until")
    rows = [(w.event, w.handler, w.name, f"{w.source} {w.type}", w.since, w.until) for w in found.data]
    show(columns, rows, empty="no run waits for an event")
    for kind in found.noted:
        tell(f"{clean(f'{kind.source} {kind.type} by {kind.place}')}: noted since {ago(kind.since)}")


@waits.command("wake")
@click.argument("reference", metavar="EVENT", shell_complete=completion_types.EVENTS)
@click.argument("handler")
def wake_(reference: str, handler: str) -> None:
    """End the wait of HANDLER on EVENT.

    Its event.wait returns None, as if the time were over. Audited.
    """
    with desk() as here:
        here.ask(wake, which=asking(EventPath, event=reference), asked=asking(WakeRequest, handler=handler))
    tell(f"{clean(handler)} goes on without what it waited for, unless that has come")
