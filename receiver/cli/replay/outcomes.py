"""The outcome of a replay for each event, in words and as an exit code."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean, print_json
from hookonce.receiver.cli.output.times import ago
from hookonce.receiver.desk.replays import OUTCOMES, Outcome
from hookonce.receiver.desk.rows import GOOD, DoneRun, ReplayOutcome

_MAX_LINES = 20
"""Outcomes printed one by one; more are counted."""
_LEFT_ALONE = frozenset({ReplayOutcome.RUNNING, ReplayOutcome.DONE})
"""Outcomes of events that could be replayed in another state."""


class ReplayReport:
    """Prints outcomes as they come, as JSON, or at the end, in words; keeps no more than it needs for that."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._first: list[Outcome] = []
        self._fates: Counter[ReplayOutcome] = Counter()
        self.is_whole = True

    def take(self, outcomes: Sequence[Outcome]) -> None:
        """Take the next outcomes."""
        for outcome in outcomes:
            if self._as_json:
                print_json(outcome.model_dump())
            if len(self._first) <= _MAX_LINES:
                self._first.append(outcome)
            self._fates[outcome.fate] += 1
            self.is_whole = self.is_whole and outcome.is_whole

    def finish(self) -> None:
        """Print in words what has not been printed."""
        if self._as_json:
            return
        if len(self._first) > _MAX_LINES:
            for fate, count in self._fates.most_common():
                tell(f"{count} times: {OUTCOMES[fate]}")
            return
        for outcome in self._first:
            tell(_line(outcome))

    def is_any(self, fates: Collection[ReplayOutcome]) -> bool:
        """Whether an event had one of these."""
        return any(fate in fates for fate in self._fates)

    @property
    def exit(self) -> Exit:
        """The code for a replay that was not whole."""
        return Exit.PARTIAL if self.is_any(GOOD | _LEFT_ALONE) else Exit.FAILURE


def _line(outcome: Outcome) -> str:
    line = f"event {outcome.id} {outcome.means}"
    if outcome.is_command:
        line = line.replace("event", "the command of a client, event", 1)
    if outcome.fate is ReplayOutcome.DONE:
        again = f"hookonce replay {outcome.id} --again --seen {outcome.view}"
        return f"{line}: {_told(outcome.done)}; to run it once more: {again}"
    if outcome.handlers:
        line += f": {clean(', '.join(outcome.handlers))}"
    if outcome.forgotten:
        line += f"; repeated: {clean(', '.join(outcome.forgotten))}"
    if outcome.left and outcome.fate is not ReplayOutcome.RUNNING:
        line += f"; running and left alone: {clean(', '.join(outcome.left))}"
    if outcome.skipped_by:
        line += f"; older than what was done, so it will be skipped by {clean(', '.join(outcome.skipped_by))}"
    kept = [run for run in outcome.done if run.handler not in outcome.handlers]
    if kept and outcome.fate is ReplayOutcome.REPLAYED:
        line += f"; done and left alone: {_told(kept)}"
    return line


def _told(runs: Sequence[DoneRun]) -> str:
    """Tell which handlers have succeeded, and when."""
    now = datetime.now(UTC)
    return ", ".join(f"{clean(run.handler)} ({ago(run.ended_at, now)})" for run in runs)
