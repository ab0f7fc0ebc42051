"""`hookonce entities`: what handlers with stale= have done of an object of a sender's."""

import click

from hookonce.receiver.cli.action_command import done, listing
from hookonce.receiver.desk.entities import forget_entity, get_entity

entities = click.Group(
    commands=[
        listing(
            get_entity,
            {
                "handler": "handler",
                "account": "account",
                "version": "version",
                "event": "event",
                "done": lambda each: each.raised_at,
            },
            "nothing was done of it",
            name="show",
            about="""Show the newest version of ENTITY for each handler.

            ENTITY is written as `event.subject` has it, for example customer:cus_123.
            """,
        ),
        done(
            forget_entity,
            "forgot {entity} of {source}; the next event about it is the newest",
            name="forget",
            about="Forget what was done of ENTITY; whatever comes next is its newest. Audited.",
        ),
    ],
    help="Show and forget the newest versions that handlers (stale=) have done.",
)
