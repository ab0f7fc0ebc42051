"""The runs of an event as its page shows them: dead ones first, and of each its latest error with the code."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hookonce.receiver.desk.deliveries import ShownEvent
from hookonce.receiver.desk.rows import AttemptLog, Frame, Raised, Run
from hookonce.receiver.desk.rows import Failure as FailureRow
from hookonce.receiver.ledger.states import RunStatus

MAX_ATTEMPTS = 50
"""Failed attempts shown of a run, the newest."""
WHOLE_TRACEBACKS = 5
"""Earlier attempts with a whole traceback, the newest; of those before, the code at one frame is shown."""
_NAME = re.compile(r"([A-Za-z_][\w.]*)(?=: |$| \()")
_ORDER = (RunStatus.DEAD, RunStatus.WAITING, RunStatus.RUNNING, RunStatus.DONE, RunStatus.DISCARDED)


def anchor(kind: str, subject: str, *number: int) -> str:
    """Return the id of a part of the page.

    It is hexadecimal: htmx looks for what it keeps with "#" and the id, and takes a dot in it for a class.
    """
    return "-".join([kind, subject.encode().hex(), *map(str, number)])


def numbered(cycle: int, attempt: int) -> str:
    """Return the name of an attempt."""
    if cycle == 1:
        return f"Attempt {attempt}"
    return f"Replay {cycle - 1}" + (f", attempt {attempt}" if attempt > 1 else "")


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt, the `nth` under its number: one that is not charged gives its number to the next one."""

    row: FailureRow
    nth: int = 1

    @property
    def errors(self) -> Sequence[Raised]:
        """The errors of its traceback, the one that ended it first."""
        return self.row.frames.errors[::-1] if self.row.frames else ()

    @property
    def number(self) -> tuple[int, int]:
        """The cycle and the number of the attempt."""
        return self.row.cycle, self.row.attempt

    def id(self, kind: str) -> str:
        """Return the id of a part of the page that is about it."""
        return anchor(kind, self.row.handler, *self.number, *([self.nth] if self.nth > 1 else []))

    @property
    def place(self) -> Frame | None:
        """The innermost frame that is the user's, of the error that ended it or of one before."""
        frames = (frame for each in self.errors for frame in reversed(each.frames) if frame.is_users)
        return next(frames, None)

    @property
    def said(self) -> str:
        """The text of the error."""
        return self.row.said

    @property
    def was_killed(self) -> bool:
        """Whether it was ended by another process, which knew neither when it began nor what it had logged."""
        return self.row.started_at is None and not self.row.traceback and not self.row.unreadable

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
    """The log of an attempt, the `nth` under its number; `is_unread` if its lines were not asked for."""

    log: AttemptLog
    nth: int
    is_unread: bool

    @property
    def number(self) -> tuple[int, int]:
        """The cycle and the number of the attempt."""
        return self.log.cycle, self.log.attempt

    @property
    def id(self) -> str:
        """Its id on the page."""
        return anchor("log", self.log.handler, *self.number, *([self.nth] if self.nth > 1 else []))


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that is over: how it failed, if it did, the failure that is shown above it, and what it logged."""

    number: tuple[int, int]
    failure: Failure | None
    newer: Failure | None
    logs: Sequence[Logged]

    @property
    def has_same_error(self) -> bool:
        """Whether the failure above it has the same error."""
        return bool(self.failure and self.newer and self.failure.row.error == self.newer.row.error)

    @property
    def has_same_code(self) -> bool:
        """Whether the failure above it shows its code."""
        mine, newer = (
            [each.frames for each in one.errors] if one else None for one in (self.failure, self.newer)
        )
        return mine is not None and mine == newer


@dataclass(frozen=True, slots=True)
class Panel:
    """One run, with its failed attempts of all cycles and what its attempts logged, the newest first.

    `left_out` older failures are not shown.
    """

    run: Run
    failures: Sequence[Failure]
    logs: Sequence[Logged]
    left_out: int

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
        logs: dict[tuple[int, int], list[Logged]] = {}
        for each in self.logs:
            if each is not self.log:
                logs.setdefault(each.number, []).append(each)
        found = [
            Attempt(each.number, each, newer, logs.pop(each.number, ()))
            for each, newer in zip(self.failures, [None, *self.failures], strict=False)
            if each is not self.latest
        ]
        found += [Attempt(number, None, None, each) for number, each in logs.items()]
        return sorted(found, key=lambda attempt: attempt.number, reverse=True)


def panels(found: ShownEvent) -> list[Panel]:
    """Return the runs of an event: dead ones first, then what is open, then what is done."""
    made = [_panel(found, run) for run in found.runs]
    return sorted(made, key=lambda panel: (_ORDER.index(RunStatus(panel.run.status)), panel.latest is None))


def _panel(found: ShownEvent, run: Run) -> Panel:
    rows = [each for each in found.failures if each.handler == run.handler]
    numbers = [(each.cycle, each.attempt) for each in rows]
    failures = [Failure(row, nth) for row, nth in zip(rows, _counted(numbers), strict=True)]
    kept = [each for each in found.logs if each.handler == run.handler]
    nths = _counted((each.cycle, each.attempt) for each in kept)
    logs = [Logged(log, nth, _is_unread(found, log)) for log, nth in zip(kept, nths, strict=True)]
    return Panel(run, failures[::-1][:MAX_ATTEMPTS], logs[::-1], max(len(rows) - MAX_ATTEMPTS, 0))


def _counted(numbers: Iterable[tuple[int, int]]) -> Iterator[int]:
    """Yield how often each number has come so far."""
    seen: Counter[tuple[int, int]] = Counter()
    for number in numbers:
        seen[number] += 1
        yield seen[number]


def _is_unread(found: ShownEvent, log: AttemptLog) -> bool:
    is_empty = not (log.lines or log.left_out or log.unreadable)
    return is_empty and (log.handler, log.cycle, log.attempt) in found.unread_logs
