"""What a replay made of each event, in words and as an exit code."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict

import click

from receiver.cli.exits import Exit
from receiver.cli.tables import clean, print_json
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


class Told:
    """Tells outcomes as they come, as JSON, or at the end, in words; keeps no more than it needs for that."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._first: list[Outcome] = []
        self._fates: Counter[Fate] = Counter()
        self.is_whole = True

    def take(self, outcomes: Sequence[Outcome]) -> None:
        """Take the next outcomes."""
        for outcome in outcomes:
            if self._as_json:
                print_json({**asdict(outcome), "fate": outcome.fate.replace(" ", "_")})
            if len(self._first) <= _SPOKEN:
                self._first.append(outcome)
            self._fates[outcome.fate] += 1
            self.is_whole = self.is_whole and outcome.is_whole

    def finish(self) -> None:
        """Say in words what has not been said."""
        if self._as_json:
            return
        if len(self._first) > _SPOKEN:
            for fate, count in self._fates.most_common():
                click.echo(f"{count} times: {_SAYS[fate]}", err=True)
            return
        for outcome in self._first:
            click.echo(_line(outcome), err=True)

    def is_any(self, fates: Collection[Fate]) -> bool:
        """Whether an event had one of these."""
        return any(fate in fates for fate in self._fates)

    @property
    def exit(self) -> Exit:
        """The code for a replay that was not whole."""
        return Exit.PARTIAL if self.is_any(GOOD | {Fate.RUNNING}) else Exit.FAILURE


def _line(outcome: Outcome) -> str:
    line = f"event {outcome.id} {_SAYS[outcome.fate]}"
    if outcome.handlers:
        line += f": {clean(', '.join(outcome.handlers))}"
    if outcome.left and outcome.fate is not Fate.RUNNING:
        line += f"; running and left alone: {clean(', '.join(outcome.left))}"
    return line
