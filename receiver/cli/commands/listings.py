"""Commands that list what an action answers, with columns of their own: `hookonce workers`, `audit`, `limits` …."""

import click

from hookonce.receiver.cli.action_command import done, facts_of, listing
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.cli.output.times import ago, soon
from hookonce.receiver.desk.access.history import list_audit
from hookonce.receiver.desk.diffs import diff_event
from hookonce.receiver.desk.entities import forget_entity, get_entity
from hookonce.receiver.desk.events import list_client_commands
from hookonce.receiver.desk.forms import plain
from hookonce.receiver.desk.maintenance import Forgotten, forget_window
from hookonce.receiver.desk.pauses import Handler, list_handlers
from hookonce.receiver.desk.replays import list_bulk_replays
from hookonce.receiver.desk.stats import list_workers
from hookonce.receiver.desk.steps import Waits, list_waits, wake

workers = facts_of(
    list_workers,
    "no worker runs many at once (`hookonce worker --concurrency`); `hookonce doctor` says whether any runs",
)

commands = listing(
    list_client_commands,
    {
        "id": "id",
        "command": "name",
        "account": "account",
        "state": "state",
        "received": "received_at",
        "times asked": "deliveries",
    },
    "no command matches; [commands.NAME] in hookonce.toml takes them",
    about="List commands of clients, newest first, and what became of each; `hookonce events show ID` has all of one.",
)

replays = listing(
    list_bulk_replays,
    {
        "number": "id",
        "by": "who",
        "started": "started_at",
        "state": "state",
        "matched": "matched",
        "replayed": "replayed",
        "left alone": "left_alone",
        "of": lambda bulk: plain(bulk.filter),
    },
    "no bulk replay yet; `hookonce replay --status dead` starts one",
    document=lambda bulk: bulk.model_dump() | {"is_complete": bulk.state == "complete"},
    about="List bulk replays, newest first: whose, of what, and how far.",
)

audit = listing(
    list_audit,
    {
        "id": "id",
        "at": "at",
        "by": "who",
        "did": "action",
        "to": "subject",
        "detail": lambda row: plain(row.detail),
    },
    "no change matches",
)

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
            "no such run waits for an event",
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


def limits_of(handler: Handler) -> str:
    """Return what the runs of a handler are held to, in words."""
    return ", ".join(handler.limits.words()) if handler.limits else ""


def _state(handler: Handler) -> str | None:
    state = handler.breaker
    if state is None and not (handler.limits and handler.limits.breaker):
        return None
    return f"open since {ago(state.opened_at)}" if state and state.is_open else "closed"


def _next_try(handler: Handler) -> str | None:
    state = handler.breaker
    return soon(state.try_at) if state and state.is_open else None


limits = listing(
    list_handlers,
    {
        "handler": "name",
        "limits": limits_of,
        "queued": "waiting_for_limit",
        "delay": lambda handler: (
            f"{handler.rate_delay_seconds:.0f} s" if handler.rate_delay_seconds else None
        ),
        "breaker": _state,
        "failures": lambda handler: handler.breaker.failures if handler.breaker else None,
        "next try": _next_try,
        "held back": lambda handler: handler.breaker.waiting if handler.breaker else None,
        "error": lambda handler: handler.breaker and handler.breaker.error.partition("\n")[0],
    },
    "no handler has a limit or a circuit breaker; `@on(rate=, concurrency=, breaker=)` sets them",
    rows_of=lambda handler: [handler] if limits_of(handler) or handler.breaker else [],
    document=lambda handler: handler.model_dump(
        include={"name", "limits", "waiting_for_limit", "rate_delay_seconds", "breaker"}
    ),
    about="List the limits and circuit breakers of handlers, what they hold back, and when a handler is tried again.",
)

diff = facts_of(diff_event, name="diff")


def _forgotten(found: Forgotten) -> str:
    if found.forgotten is None:
        return "the window is reset; Redis is unreachable, and its entries expire on their own"
    return f"forgot {found.forgotten} event ids"


forget = done(
    forget_window,
    _forgotten,
    name="forget-window",
    about="""Forget every event id in Redis.

    For after a restore of the database, whose ledger may hold less than before. Loses nothing: until the window
    has learnt them again, duplicates are found by the ledger. The ledger makes itself another key, so nothing of before
    is believed, even if somebody puts it back.
    """,
)
