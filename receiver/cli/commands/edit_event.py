"""`hookonce events edit`: an event sent again with another body, as a test event."""

from typing import IO

import click

from hookonce.receiver.cli.desk import asking, desk
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.desk.events import EventPath, get_event_body
from hookonce.receiver.desk.sources import EditedEvent, send_edited_event


@click.command(
    epilog=examples("hookonce events edit 12", "hookonce events edit 12 --body - --run < other.json")
)
@click.argument("reference", metavar="ID", shell_complete=completion_types.EVENTS)
@click.option("--body", "file", type=click.File(), help="Take the body from this file; default is $EDITOR.")
@click.option("--run", is_flag=True, help="Have handlers run on it; else it is held until it is released.")
def edit(reference: str, file: IO[str] | None, *, run: bool) -> None:
    """Send an event again with another body.

    It is signed as its sender would sign it, and comes in as a test event with its own id, through a receiver with
    `hookonce --at`. Outside `hookonce dev`, only where the source has `tests = true`; audited.
    """
    which = asking(EventPath, event=reference)
    with desk(takes_in=True) as here:
        body = (
            file.read()
            if file
            else click.edit(here.ask(get_event_body, which=which).body.decode(errors="replace"))
        )
        if body is None:
            raise click.ClickException("the body was not saved, so nothing was sent")
        sent = here.ask(send_edited_event, which=which, asked=asking(EditedEvent, body=body, run=run))
    tell(f"sent as event {sent.id} ({sent.event_id})")
