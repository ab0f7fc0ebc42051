"""`hookonce stats`: the numbers of the inbox at a glance."""

from typing import Any

import click

from hookonce.receiver.cli.connections import ledger
from hookonce.receiver.cli.desk import desk
from hookonce.receiver.cli.output.printing import paged, put
from hookonce.receiver.cli.output.tables import clean, print_json, show
from hookonce.receiver.cli.output.times import ago, soon
from hookonce.receiver.cli.output.words import counted, events_that_wait
from hookonce.receiver.desk.stats import get_stats, recount_events

_INDENT = " " * 21
_TABLES = {
    "rejected": ("source", "rejected", "deliveries"),
    "secrets": ("source", "secret", "deliveries", "last used"),
}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--recount", is_flag=True, help="Count the whole ledger afresh, as after changes by hand.")
def stats(*, as_json: bool, recount: bool) -> None:
    """Count events by source and status, rejected deliveries by reason, uses of secrets; say what waits."""
    if recount:
        with ledger() as connection:
            recount_events(connection)
    with desk() as here:
        numbers = here.ask(get_stats).model_dump()
    if as_json:
        print_json(numbers)
        return
    with paged():
        _show(numbers)


def _show(numbers: dict[str, Any]) -> None:
    put(_account(numbers["account"]), _INDENT)
    for name in ("dead", "held", "conflicts", "keys_reused", "oldest_due_seconds", "notifications_pending"):
        value = numbers[name]
        click.echo(
            f"{name.replace('_', ' '):<20} {'unknown: Redis does not answer' if value is None else value}"
        )
    for row in numbers["alerts"]:
        _line("alert", f"{row['kind']} {row['subject']}: {row['detail']}")
    _show_slots(numbers)
    _show_handlers(numbers)
    for row in numbers["paused"]:
        whose = " (by its circuit breaker)" if row["by"] == "breaker" else ""
        _line("paused", f"{row['kind']} {row['name']}{whose}")
    click.echo()
    show(
        ("source", "status", "events"),
        [
            (row["source"], row["status"], f"{'' if row['is_exact'] else '~'}{row['count']}")
            for row in numbers["events"]
        ],
        empty="no event yet; `hookonce trigger SOURCE` sends one",
    )
    for name, columns in _TABLES.items():
        if numbers[name]:
            click.echo()
            show(columns, [tuple(row.values()) for row in numbers[name]])


def _account(account: dict[str, int]) -> str:
    """Say what became of all that was accepted, in numbers that add up; replays are no events, and said apart."""
    parts = " + ".join(
        f"{number} {name}"
        for name, number in account.items()
        if number and name not in {"accepted", "replayed"}
    )
    return f"{'accepted':<20} {account['accepted']} = {parts or 'nothing'}; {account['replayed']} replayed"


def _line(name: str, text: str) -> None:
    put(f"{name:<20} {clean(text)}", _INDENT)


def _show_slots(numbers: dict[str, Any]) -> None:
    for row in numbers["workers"]:
        lost = f", {row['lost']} lost" if row["lost"] else ""
        kept = ", one is reserved for fast handlers"
        age = f", {row['seconds_ago']} s ago"
        _line("slots", f"{row['busy']} of {row['slots']} in use{lost}{kept} ({row['name']}{age})")
    for handler, count in numbers["suspects"].items():
        _line("suspects", f"{count} of {handler}, run one by one")
    for row in numbers["long_transactions"]:
        _line("long transaction", f"{row['handler']}, event {row['event']}, {row['seconds']:.1f} s")


def _show_handlers(numbers: dict[str, Any]) -> None:
    """Say what holds handlers up: their limits, their breakers, batches that failed."""
    for handler, count in numbers["waiting_for_limit"].items():
        _line("limit", f"{count} of {handler} are queued for a slot")
    for handler, seconds in numbers["rate_delay_seconds"].items():
        _line("rate", f"{handler}: what comes now waits {seconds} s")
    for row in numbers["breakers"]:
        state = "closed"
        if row["is_open"]:
            waiting = events_that_wait(row["waiting"], row["oldest_waiting_seconds"])
            state = f"open since {ago(row['opened_at'])}, {waiting}, the next try {soon(row['try_at'])}"
        _line(
            "breaker",
            f"{row['handler']}: {state}, {counted(row['failures'], 'failure')} in a row: {row['error']}",
        )
    for row in numbers["batches"]:
        left = (
            f"; the batch is being split; the next of {row['waiting']} parts has {counted(row['size'], 'event')}"
            if row["waiting"]
            else ""
        )
        text = f"{row['events']} events in {row['batches']}, halved {row['halvings']} times{left}"
        _line("batches", f"{row['handler']}: {text}{': ' + row['error'] if row['error'] else ''}")
