"""`hookonce rejected` and `hookonce events conflicts`: rejected deliveries, and events that came with two bodies."""

import click

from hookonce.receiver.cli.action_command import facts_of, listing, shown
from hookonce.receiver.cli.commands.explain import print_explanation
from hookonce.receiver.desk.rejected import (
    explain_rejected,
    get_rejected,
    list_conflicts,
    list_quarantine,
    list_rejected,
)

rejected = click.Group(
    commands=[
        listing(
            list_rejected,
            "id rejected_at source reason detail",
            "no rejected delivery matches; `hookonce stats` counts all",
            name="list",
        ),
        facts_of(get_rejected, name="show"),
        shown(explain_rejected, print_explanation, name="explain"),
        listing(
            list_quarantine,
            "source reason count bytes oldest newest",
            "nothing is in quarantine; `quarantine = true` in a source's table keeps what it rejects",
            name="quarantine",
            about="Say what is in quarantine, by source and reason. `hookonce reverify` checks it again.",
        ),
    ],
    help="List, show and explain deliveries that were rejected. Kept are the newest; `hookonce stats` counts them all.",
)

conflicts = listing(
    list_conflicts,
    "event source event_id type first_at last_at deliveries bytes",
    "no event came with two bodies",
    name="conflicts",
    about="List events that came with two bodies under one id.\n\n`hookonce events show ID --json` has the bodies.",
)
