"""`hookonce waits`: runs that wait for another event (event.wait), and what is noted for them."""

import click

from hookonce.receiver.cli.action_command import done, listing
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.desk.steps import Waits, list_waits, wake


def _noted(found: Waits) -> None:
    for kind in found.noted:
        tell(f"{clean(f'{kind.source} {kind.type} by {kind.place}')}: noted since {ago(kind.since)}")


waits = click.Group(
    commands=[
        listing(
            list_waits,
            {
                "event": "event",
                "handler": "handler",
                "wait": "name",
                "for": lambda wait: f"{wait.source} {wait.type}",
                "since": "since",
                "until": "until",
            },
            "no run waits for an event",
            then=_noted,
            name="list",
            about="""List what waits, and since when.

            The wait that ends first stands first. An event that came before such events were noted ends no wait.
            """,
        ),
        done(
            wake,
            "{handler} goes on without what it waited for, unless that has come",
            name="wake",
            about="""End the wait of HANDLER on EVENT.

            Its event.wait returns None, as if the time were over. Audited.
            """,
            instead={"handler": click.Argument(["handler"])},
        ),
    ],
    help="List the runs that wait for another event, and have one go on without it.",
)
