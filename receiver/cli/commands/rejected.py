"""`hookonce rejected` and `hookonce conflicts`: what was refused, and what came twice with two bodies."""

import click

from hookonce.receiver.cli.action_command import listing
from hookonce.receiver.desk.rejected import list_conflicts, list_rejected

rejected = click.Group(
    commands=[
        listing(
            list_rejected,
            {"rejected at": "rejected_at", "source": "source", "reason": "reason", "detail": "detail"},
            "nothing was rejected, as far as these options go; `hookonce stats` counts all",
            name="list",
        )
    ],
    help="List deliveries that were rejected. Kept are the newest; `hookonce stats` counts them all.",
)

_COLUMNS = ("event", "source", "event_id", "type", "first_at", "last_at", "deliveries", "bytes")

conflicts = click.Group(
    commands=[
        listing(
            list_conflicts,
            {column.replace("_", " "): column for column in _COLUMNS},
            "no event came with two bodies",
            name="list",
        )
    ],
    help="List events that came with two bodies under one id; `events show ID --json` has the bodies.",
)
