"""`hookonce replay`: run stored events again, or release held ones."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import click
import psycopg

from receiver.cli.errors import NotFound
from receiver.cli.exits import Exit
from receiver.cli.servers import configured, ledger, operator, ring
from receiver.cli.tables import clean, print_json
from receiver.cli.times import SINCE
from receiver.ledger import desk_find, desk_replay
from receiver.ledger.desk import Filter
from receiver.ledger.desk_replay import GOOD, Fate, Outcome

_SPOKEN = 20
"""Outcomes told one by one; more are counted."""
_SAYS = {
    Fate.REPLAYED: "replayed",
    Fate.RELEASED: "released",
    Fate.QUEUED: "waits for its first attempt already",
    Fate.RUNNING: "is running and was left alone; try again when it has ended",
    Fate.BODY_DROPPED: "can't be replayed: its body was dropped by retention",
    Fate.UNREADABLE: "can't be replayed: the provider could not read it; see `events show --raw`",
    Fate.CHANGED: "has changed its status meanwhile and was left alone",
}


@click.command()
@click.argument("references", metavar="ID…", nargs=-1)
@click.option(
    "--status", type=click.Choice(("dead", "ignored", "held", "done", "waiting")), help="All in this status."
)
@click.option("--source", help="With --status: only of this source.")
@click.option("--type", "kind", help="With --status: only of this type; * stands for any text.")
@click.option("--since", type=SINCE, help="With --status: only received since: 2h, 7d, today, 2026-01-31.")
@click.option(
    "--limit", default=0, type=click.IntRange(0), help="With --status: the oldest so many; 0 = all."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per event.")
def replay(references: tuple[str, ...], limit: int, *, yes: bool, as_json: bool, **wanted: Any) -> None:  # noqa: ANN401
    """Run events again: new attempts under the same idempotency key; held events are released.

    ID is the ledger id or source:event_id. Exit 3 if some were left alone, 4 if there is no such event.
    """
    narrowed = limit or any(wanted[name] for name in ("source", "kind", "since"))
    if bool(references) == bool(wanted["status"]) or (references and narrowed):
        raise click.UsageError(
            "name events by ID, or take all in a status with --status (and --source, --type, --since)"
        )
    settings = configured()
    with ledger(settings) as connection:
        if references:
            ids, unknown = _resolve(connection, references)
        else:
            ids, unknown = _select(connection, limit, yes=yes, wanted=wanted), []
        outcomes = list(desk_replay.replay(connection, ids, operator(), status=wanted["status"]))
    vanished = set(ids) - {outcome.id for outcome in outcomes}
    unknown += [str(number) for number in sorted(vanished)]
    if any(outcome.fate in GOOD for outcome in outcomes):
        ring(settings)
    _tell(outcomes, as_json=as_json)
    _end(outcomes, unknown)


def _resolve(connection: psycopg.Connection, references: Iterable[str]) -> tuple[list[int], list[str]]:
    found = {reference: desk_find.find(connection, reference) for reference in references}
    known = [number for number in found.values() if number is not None]
    return known, [reference for reference, number in found.items() if number is None]


def _select(connection: psycopg.Connection, limit: int, *, yes: bool, wanted: dict[str, Any]) -> list[int]:
    match = Filter(
        source=wanted["source"], type=wanted["kind"], status=wanted["status"], since=wanted["since"]
    )
    ids = desk_replay.matching(connection, match, limit)
    count = f"{len(ids)} {wanted['status']} event{'' if len(ids) == 1 else 's'}"
    if not ids:
        click.echo(f"{count} match; nothing to do", err=True)
    elif not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(f"{count} match; add --yes to replay them without being asked")
        click.confirm(f"replay {count}?", abort=True, err=True)
    return ids


def _tell(outcomes: Sequence[Outcome], *, as_json: bool) -> None:
    if as_json:
        for outcome in outcomes:
            print_json({**asdict(outcome), "fate": outcome.fate.replace(" ", "_")})
        return
    if len(outcomes) > _SPOKEN:
        for fate, count in Counter(outcome.fate for outcome in outcomes).most_common():
            click.echo(f"{count} times: {_SAYS[fate]}", err=True)
        return
    for outcome in outcomes:
        line = f"event {outcome.id} {_SAYS[outcome.fate]}"
        if outcome.handlers:
            line += f": {clean(', '.join(outcome.handlers))}"
        if outcome.left and outcome.fate is not Fate.RUNNING:
            line += f"; running and left alone: {clean(', '.join(outcome.left))}"
        click.echo(line, err=True)


def _end(outcomes: Sequence[Outcome], unknown: Sequence[str]) -> None:
    """Leave with the exit code that says how much was done."""
    if unknown:
        names = ", ".join(map(clean, unknown))
        text = (
            f"not in the ledger: {names}; expected ledger ids or source:event_id, see `hookonce events list`"
        )
        if not outcomes:
            raise NotFound(text)
        click.echo(f"hookonce: {text}", err=True)
    if not unknown and all(outcome.is_whole for outcome in outcomes):
        return
    some = any(outcome.fate in GOOD | {Fate.RUNNING} for outcome in outcomes)
    sys.exit(Exit.PARTIAL if some else Exit.FAILURE)
