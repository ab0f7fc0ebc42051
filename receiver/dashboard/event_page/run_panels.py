"""The runs of an event as its page tells them: what failed first, and of each its latest error with the code."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from hookonce.receiver.desk.content import ShownEvent
from hookonce.receiver.desk.rows import AttemptLog, Frame, Raised, Run
from hookonce.receiver.ledger.states import RunStatus

MAX_ATTEMPTS = 50
"""Failed attempts shown of a run, the newest."""
WHOLE_TRACEBACKS = 5
"""Earlier attempts with a whole traceback, the newest; of those before, the code at one frame is shown."""
_NAME = re.compile(r"([A-Za-z_][\w.]*)(?=: |$| \()")
_ORDER = (RunStatus.DEAD, RunStatus.WAITING, RunStatus.RUNNING, RunStatus.DONE, RunStatus.DISCARDED)


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt; `errors` are those of its traceback, the one that ended it first."""

    row: Mapping[str, Any]
    errors: Sequence[Raised]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Take a row as `event_details.detail` gives it."""
        return cls(row, row["frames"].errors[::-1] if row["frames"] else ())

    @property
    def number(self) -> tuple[int, int]:
        """The cycle and the number of the attempt."""
        return self.row["cycle"], self.row["attempt"]

    @property
    def place(self) -> Frame | None:
        """The innermost frame that is the user's, of the error that ended it or of one before."""
        frames = (frame for each in self.errors for frame in reversed(each.frames) if frame.is_users)
        return next(frames, None)

    @property
    def said(self) -> str:
        """The text of the error, from the traceback where errors are sealed."""
        error, said = str(self.row["error"]), self.errors[0].said if self.errors else ""
        name = _NAME.match(said)
        return said if name and error.startswith(name[1].rpartition(".")[2]) else error

    def has_code_of(self, newer: "Failure") -> bool:
        """Whether its frames, with the code, are those of a failure that is shown above it."""
        return [each.frames for each in self.errors] == [each.frames for each in newer.errors]

    @property
    def was_killed(self) -> bool:
        """Whether it was ended by another process, which knew neither when it began nor what it had logged."""
        return self.row["started_at"] is None and not self.row["traceback"] and not self.row["unreadable"]

    @property
    def name(self) -> str:
        """The class of the error, where it begins with one."""
        found = _NAME.match(self.said)
        return found[1] if found else ""

    @property
    def message(self) -> str:
        """The text of the error without its class."""
        return self.said[len(self.name) :].removeprefix(":").strip()


@dataclass(frozen=True, slots=True)
class Logged:
    """The log of an attempt; of several under one number, since its handler put it off, it is the `nth`.

    `is_unread` says that its lines were not asked for.
    """

    log: AttemptLog
    nth: int
    is_unread: bool

    @property
    def number(self) -> tuple[int, int]:
        """The cycle and the number of the attempt."""
        return self.log.cycle, self.log.attempt


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that is over: how it failed, if it did, and what it logged."""

    cycle: int
    attempt: int
    failure: Failure | None
    newer: Failure | None
    """The failure that is shown above it."""
    logs: Sequence[Logged]
    is_brief: bool
    """Whether little of its traceback is shown."""

    @property
    def has_same_error(self) -> bool:
        """Whether the failure above it says the same."""
        return bool(self.failure and self.newer and self.failure.row["error"] == self.newer.row["error"])

    @property
    def has_same_code(self) -> bool:
        """Whether the failure above it shows its code."""
        return bool(self.failure and self.newer and self.failure.has_code_of(self.newer))


@dataclass(frozen=True, slots=True)
class Panel:
    """One run, with its failed attempts of all cycles and what its attempts logged, the newest first."""

    run: Run
    failures: Sequence[Failure]
    logs: Sequence[Logged]

    @property
    def latest(self) -> Failure | None:
        """The attempt that its error is of, unless the run is done."""
        return self.failures[0] if self.failures and self.run.error is not None else None

    @property
    def log(self) -> Logged | None:
        """The log of the attempt that the run's error or result is of, or of one after it."""
        shown = self.latest.number if self.latest else (self.run.cycle, self.run.attempts)
        return next((each for each in self.logs[:1] if each.number >= shown), None)

    @property
    def earlier(self) -> Sequence[Attempt]:
        """The attempts but for what is shown of the latest by itself, the newest first."""
        newer = dict(zip((each.number for each in self.failures[1:]), self.failures, strict=False))
        failures = {each.number: each for each in self.failures if each is not self.latest}
        logs: dict[tuple[int, int], list[Logged]] = {}
        for each in self.logs:
            if each is not self.log:
                logs.setdefault(each.number, []).append(each)
        numbers = sorted({*failures, *logs}, reverse=True)
        return [
            Attempt(
                *number,
                failures.get(number),
                newer.get(number),
                logs.get(number, ()),
                nth >= WHOLE_TRACEBACKS,
            )
            for nth, number in enumerate(numbers)
        ]


def panels(found: ShownEvent) -> list[Panel]:
    """Return the runs of an event: dead ones first, then what is open, then what is done."""
    made = [Panel(run, _failures(found, run.handler), _logs(found, run.handler)) for run in found.runs]
    return sorted(made, key=lambda panel: (_ORDER.index(RunStatus(panel.run.status)), panel.latest is None))


def _failures(found: ShownEvent, handler: str) -> list[Failure]:
    mine = [failure for failure in found.failures if failure["handler"] == handler][::-1][:MAX_ATTEMPTS]
    return [Failure.of(row) for row in mine]


def _logs(found: ShownEvent, handler: str) -> list[Logged]:
    seen: Counter[tuple[int, int]] = Counter()
    made = []
    for log in found.logs:
        if log.handler == handler:
            number = log.cycle, log.attempt
            seen[number] += 1
            has_lines = log.lines or log.left_out or log.unreadable
            is_unread = not has_lines and (handler, *number) in found.unread_logs
            made.append(Logged(log, seen[number], is_unread))
    return made[::-1]
