"""The timeline of an event: each attempt, its steps and traced calls as bars on one scale, its waits, and the pauses.

The scale is the same for all that was at work. A pause in which nothing was (minutes until the next attempt, where an
attempt takes milliseconds) is drawn as a gap of one width, with its length on it: it would leave nothing to see of the
rest. Widths are percentages for attributes of SVG, since the policy of the pages allows no style on an element.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, Self

from hookonce.receiver.desk.content import ShownEvent
from hookonce.receiver.desk.rows import Run, Step, StepStatus, Wait
from hookonce.receiver.ledger.states import RunStatus

MAX_ROWS = 60
"""Attempts and steps that are drawn, the newest; an event may have failed hundreds of times."""
_GAP_WIDTH = 9.0
"""The width of a gap, in per cent of the whole; gaps never take more than half of it."""
_LONG_PAUSE = 5
"""How many times as long as all work a pause is that is drawn as a gap: to scale it would leave nothing to see."""
_SHORTEST_PAUSE = timedelta(milliseconds=50)
"""A shorter pause is always drawn to scale: as a gap it would look shorter than the work of a millisecond beside it."""
_SHORTEST_WORK = timedelta(milliseconds=2)
_LEAST_WIDTH = 0.5
_TICK_DISTANCE = 45.0
"""How far apart labels stand, in per cent: the longest, '2 min 59 s', on the narrowest track."""
_UNFOLDED = 5
"""Attempts of a handler that are drawn unfolded, the newest."""


class Kind(StrEnum):
    """Kinds of rows."""

    ARRIVAL = "arrival"
    ATTEMPT = "attempt"
    STEP = "step"
    CALL = "call"
    AWAITED = "awaited"
    NEXT = "next"


@dataclass(slots=True)
class Row:
    """One line of the waterfall: what waited (thin), then what was at work (a bar); `state` is its status, for colour.

    `waited` says what for. Without `start` nobody knows when it began, and `end` alone is marked. `until` is where a
    lease ends.
    """

    kind: Kind
    name: str
    state: str
    handler: str = ""
    start: datetime | None = None
    end: datetime | None = None
    since: datetime | None = None
    waited: str = ""
    until: datetime | None = None
    detail: str = ""
    attempt: tuple[int, int] = (1, 0)
    """The cycle and the number of the attempt."""

    @property
    def took(self) -> timedelta | None:
        """How long it was at work."""
        return self.end - self.start if self.start and self.end else None

    @property
    def wait(self) -> timedelta | None:
        """How long nothing was done before."""
        begin = self.start or self.end
        return begin - self.since if self.since and begin and begin > self.since else None


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the scale, in per cent."""

    x: float
    width: float

    @property
    def middle(self) -> float:
        """Its middle."""
        return round(self.x + self.width / 2, 2)


@dataclass(frozen=True, slots=True)
class Gap(Span):
    """A pause that is not drawn to scale; `is_told` where there is room to write its length on it."""

    length: timedelta
    is_told: bool = True


@dataclass(frozen=True, slots=True)
class Tick:
    """A time on the scale, as the span since the event came."""

    x: float
    after: timedelta


@dataclass(slots=True)
class Scale:
    """From times to per cent: pieces, each with the time and the place where it begins and ends."""

    pieces: list[tuple[datetime, datetime, float, float]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    def at(self, moment: datetime) -> float:
        """Return where a time is."""
        for begin, end, left, right in self.pieces:
            if moment <= end:
                share = (max(moment, begin) - begin) / (end - begin) if end > begin else 0.0
                return left + (right - left) * share
        return 100.0

    def span(self, begin: datetime, end: datetime) -> Span:
        """Return where a span of time is, wide enough to be seen."""
        left, right = self.at(begin), self.at(end)
        width = max(right - left, _LEAST_WIDTH)
        return Span(round(min(left, 100 - width), 2), round(width, 2))


class Lines(NamedTuple):
    """The rows of a handler: those of its older attempts, which the page folds, and the others."""

    folded: Sequence[Row]
    shown: Sequence[Row]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Self:
        """Fold what is older than the newest attempts."""
        attempts = [n for n, row in enumerate(rows) if row.kind == Kind.ATTEMPT]
        first = attempts[-_UNFOLDED] if len(attempts) > _UNFOLDED else 0
        return cls(rows[:first], rows[first:])


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The rows of an event by handler, on one scale; `left_out` older ones are not drawn."""

    began: datetime
    ended: datetime
    rows: Sequence[Row]
    scale: Scale
    ticks: Sequence[Tick]
    left_out: int = 0

    @property
    def by_handler(self) -> Mapping[str, "Lines"]:
        """The rows of each handler; those of the event itself under an empty name."""
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.handler, []).append(row)
        return {handler: Lines.of(rows) for handler, rows in found.items()}

    @property
    def has_lease(self) -> bool:
        """Whether a lease is drawn: what is under way goes on until then at the latest."""
        return any(row.until and row.end and row.until > row.end for row in self.rows)

    @property
    def length(self) -> timedelta:
        """From the arrival of the event to the last thing that has happened to it; zero if nothing has."""
        return self.ended - self.began


def waterfall(found: ShownEvent, now: datetime) -> Waterfall:
    """Draw what is known of an event up to now."""
    came = found.event.received_at
    rows: list[Row] = []
    for handler in sorted({run.handler for run in found.runs} | {each["handler"] for each in found.failures}):
        rows += _of_handler(found, handler, came, now)
    newest = sorted(rows, key=lambda row: row.end or row.start or now)[-MAX_ROWS:]
    kept = [row for row in rows if any(row is each for each in newest)]
    begins = [row.since or row.start or row.end or came for row in kept]
    first = came if len(kept) == len(rows) else min(begins, default=came)
    ends = [moment for row in kept for moment in (row.start, row.end) if moment]
    last = max([*ends, first + _SHORTEST_WORK])
    scale = _scale(first, max([last, *(row.until for row in kept if row.until)]), kept)
    received = Row(Kind.ARRIVAL, "Received", RunStatus.DONE, start=came, end=came)
    ended = min(max(ends, default=came), now)
    return Waterfall(came, ended, [received, *kept], scale, _ticks(scale, came), len(rows) - len(kept))


def _of_handler(found: ShownEvent, handler: str, came: datetime, now: datetime) -> Iterator[Row]:
    """Yield the attempts of a handler, oldest first, each followed by the steps that it did."""
    run = next((run for run in found.runs if run.handler == handler), None)
    yield from (_wait(each, handler, now) for each in (run.awaited if run else ()))
    attempts = sorted(_attempts(found, handler, run, now), key=lambda row: row.attempt)
    steps = [step for step in found.steps if step.handler == handler]
    before, before_cycle = came, 1
    for row in attempts:
        cycle = row.attempt[0]
        row.since = before if cycle == before_cycle else None
        row.waited = row.waited or ("backoff" if row.attempt[1] > 1 else "in the queue")
        yield row
        begin, end = row.start, row.end or now
        mine = [step for step in steps if begin is None or step.started_at >= begin]
        mine = [step for step in mine if step.started_at <= end]
        steps = [step for step in steps if step not in mine]
        parts = [*(_step(step, row, now) for step in mine), *_calls(found, row)]
        yield from sorted(parts, key=lambda part: part.start or part.end or now)
        before, before_cycle = end, cycle


def _attempts(found: ShownEvent, handler: str, run: Run | None, now: datetime) -> Iterator[Row]:
    for failure in found.failures:
        if failure["handler"] == handler:
            yield _failed(failure, run)
    if run is None:
        return
    this = (run.cycle, run.attempts)
    row = Row(Kind.ATTEMPT, _numbered(*this), run.status, handler, attempt=this)
    if run.status == RunStatus.DONE:
        row.start, row.end, row.detail = run.started_at, run.finished_at, "succeeded"
        yield row
    elif run.status == RunStatus.RUNNING:
        row.start, row.end, row.until = run.started_at, now, run.lease_until
        row.detail = "running"
        yield row
    elif run.status == RunStatus.WAITING:
        row.kind, row.state = Kind.NEXT, RunStatus.WAITING
        row.attempt = (run.cycle, run.attempts + 1)
        row.name = _numbered(*row.attempt)
        row.waited = str(run.waits_for or "")
        is_ahead = run.due_at and run.due_at > now and not run.parked
        row.end = run.due_at if is_ahead else now
        row.detail = "due" if is_ahead else "waiting"
        yield row


def _failed(failure: Mapping[str, Any], run: Run | None) -> Row:
    number = (failure["cycle"], failure["attempt"])
    is_last = run is not None and number == (run.cycle, run.attempts)
    started = failure["started_at"] or (run.started_at if is_last and run and run.finished_at else None)
    return Row(
        Kind.ATTEMPT,
        _numbered(*number),
        RunStatus.DEAD if is_last and run and run.status == RunStatus.DEAD else "failed",
        failure["handler"],
        start=started,
        end=failure["failed_at"],
        detail=(failure["error"].splitlines() or [""])[0],
        attempt=number,
    )


def _step(step: Step, attempt: Row, now: datetime) -> Row:
    ended = step.finished_at or (now if step.status == StepStatus.RUNNING else None)
    state = {StepStatus.DONE: RunStatus.DONE, StepStatus.RUNNING: RunStatus.RUNNING}.get(
        StepStatus(step.status), "failed"
    )
    return Row(
        Kind.STEP,
        step.name,
        state,
        step.handler,
        start=step.started_at,
        end=ended or attempt.end,
        detail=step.status,
        attempt=attempt.attempt,
    )


def _calls(found: ShownEvent, attempt: Row) -> Iterator[Row]:
    """Yield the calls of other services that an attempt traced, which stand among its lines."""
    begin = attempt.start
    if begin is None:
        return
    for log in found.logs:
        if log.handler == attempt.handler and (log.cycle, log.attempt) == attempt.attempt:
            for line in log.lines:
                if line.took is not None:
                    start = begin + timedelta(milliseconds=line.at)
                    end = start + timedelta(milliseconds=line.took)
                    state = "failed" if line.level else RunStatus.DONE
                    yield Row(Kind.CALL, line.text, state, log.handler, start, end, attempt=attempt.attempt)


def _wait(wait: Wait, handler: str, now: datetime) -> Row:
    """Return the row of a wait for another event."""
    state = RunStatus.WAITING if wait.ended_at is None else RunStatus.DONE if wait.answer else "failed"
    end = wait.ended_at or now
    awaited = f"for {wait.source} {wait.type}"
    return Row(Kind.AWAITED, wait.name, state, handler, end=end, since=wait.since, waited=awaited)


def _numbered(cycle: int, attempt: int) -> str:
    if cycle == 1:
        return f"Attempt {attempt}"
    return f"Replay {cycle - 1}" + (f", attempt {attempt}" if attempt > 1 else "")


def _scale(first: datetime, last: datetime, rows: Iterable[Row]) -> Scale:
    """Lay out the time from the first moment to the last: work by its length, long pauses as gaps."""
    busy = _merged([(first, first), (last, last), *_work(rows)])
    at_work = max(sum((end - begin for begin, end in busy), timedelta()), _SHORTEST_WORK)
    pauses = [
        (end, begin)
        for (_, end), (begin, _) in itertools.pairwise(busy)
        if begin - end > max(at_work * _LONG_PAUSE, _SHORTEST_PAUSE)
    ]
    if len(pauses) == 1 and pauses[0] == (first, last):
        pauses = []
    width = min(_GAP_WIDTH, 50 / len(pauses)) if pauses else 0.0
    drawn = last - first - sum((end - begin for begin, end in pauses), timedelta()) or _SHORTEST_WORK
    per_second = (100 - width * len(pauses)) / drawn.total_seconds()
    scale, x, at = Scale(), 0.0, first
    for begin, end in [*pauses, (last, last)]:
        right = x + (begin - at).total_seconds() * per_second
        scale.pieces.append((at, begin, x, right))
        if end > begin:
            scale.pieces.append((begin, end, right, right + width))
            told = next((gap.x for gap in reversed(scale.gaps) if gap.is_told), -_TICK_DISTANCE)
            is_told = right - told >= _TICK_DISTANCE
            scale.gaps.append(Gap(round(right, 2), round(width, 2), end - begin, is_told))
        x, at = right + (width if end > begin else 0), end
    return scale


def _work(rows: Iterable[Row]) -> Iterator[tuple[datetime, datetime]]:
    for row in rows:
        end = row.end or row.start
        if end is not None:
            yield (row.start or end, end)


def _merged(spans: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    found: list[tuple[datetime, datetime]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found


def _ticks(scale: Scale, came: datetime) -> list[Tick]:
    """Return times for the scale: where its pieces begin, as far as they are apart enough to be read, and its end."""
    ticks: list[Tick] = []
    for begin, _, left, _ in [each for each in scale.pieces if each[1] > each[0]]:
        if left <= 100 - _TICK_DISTANCE and (not ticks or left - ticks[-1].x >= _TICK_DISTANCE):
            ticks.append(Tick(round(left, 2), begin - came))
    ticks.append(Tick(100.0, scale.pieces[-1][1] - came))
    return ticks
