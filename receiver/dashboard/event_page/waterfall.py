"""The timeline of an event: each attempt, its steps and traced calls as bars on one scale, its waits, and the pauses.

The scale is the same for all that was at work. A pause in which nothing was (minutes until the next attempt, where an
attempt takes milliseconds) is drawn as a gap of one width, with its length on it: it would leave nothing to see of the
rest. Widths are percentages for attributes of SVG, since the policy of the pages allows no style on an element.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from hookonce.receiver.dashboard.event_page.run_panels import Failure, Panel, anchor, numbered
from hookonce.receiver.desk.deliveries import ShownEvent
from hookonce.receiver.desk.rows import Run, StepStatus
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
_LABEL_DISTANCE = 45.0
"""How far apart labels stand, in per cent: the longest, '2 min 59 s', on the narrowest track."""
_UNFOLDED = 5
"""Attempts of a handler that are drawn unfolded, the newest."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line: a wait (thin) from `since` on, then work (a bar) from `start` to `end`; `state` is its status.

    Without `start` nobody knows when it began, and `end` alone is marked. `until` is the end of a lease, `target` the
    id of the part of the page that the line stands for, `waited` the reason of the wait.
    """

    kind: Literal["attempt", "step", "call", "awaited", "next"]
    name: str
    state: str
    target: str
    start: datetime | None
    end: datetime
    since: datetime | None = None
    waited: str = ""
    until: datetime | None = None

    @property
    def begin(self) -> datetime:
        """Its beginning, as far as it is known."""
        return self.start or self.end

    @property
    def wait(self) -> timedelta | None:
        """How long nothing was done before."""
        return self.begin - self.since if self.since and self.begin > self.since else None


class Span(NamedTuple):
    """A part of the scale, in per cent."""

    x: float
    width: float


class Gap(NamedTuple):
    """A pause that is not drawn to scale; `is_labelled` where there is room to write its length on it."""

    x: float
    width: float
    length: timedelta
    is_labelled: bool


@dataclass(slots=True)
class Scale:
    """From times to per cent: pieces, each with the time and the position of its beginning and its end."""

    pieces: list[tuple[datetime, datetime, float, float]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    def at(self, moment: datetime) -> float:
        """Return the position of a time."""
        for begin, end, left, right in self.pieces:
            if moment <= end:
                share = (max(moment, begin) - begin) / (end - begin) if end > begin else 0.0
                return left + (right - left) * share
        return 100.0

    def span(self, begin: datetime, end: datetime) -> Span:
        """Return the position of a span of time, wide enough to be seen."""
        left, right = self.at(begin), self.at(end)
        width = max(right - left, _LEAST_WIDTH)
        return Span(round(min(left, 100 - width), 2), round(width, 2))


class Lines(NamedTuple):
    """The rows of a handler: those of its older attempts, which the page folds, and the others."""

    folded: Sequence[Row]
    shown: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The rows of an event by handler, on one scale; `left_out` older ones are not drawn."""

    came: datetime
    ended: datetime
    by_handler: Mapping[str, Lines]
    scale: Scale
    left_out: int = 0

    @property
    def has_lease(self) -> bool:
        """Whether a lease is drawn: what is under way goes on until then at the latest."""
        return any(row.until for lines in self.by_handler.values() for row in lines.shown)

    @property
    def length(self) -> timedelta:
        """From the arrival of the event to the last thing that has happened to it; zero if nothing has."""
        return self.ended - self.came

    @property
    def edges(self) -> tuple[timedelta, timedelta]:
        """The two ends of the scale, as spans since the event came."""
        return self.scale.pieces[0][0] - self.came, self.scale.pieces[-1][1] - self.came


def waterfall(found: ShownEvent, panels: Sequence[Panel], now: datetime) -> Waterfall:
    """Draw what the panels show, up to now."""
    came = found.event.received_at
    drawn = {panel.run.handler: list(_of_handler(found, panel, now)) for panel in panels}
    newest = sorted((row.end for rows in drawn.values() for row in rows), reverse=True)
    oldest = newest[:MAX_ROWS][-1] if newest else came
    kept = {name: [row for row in rows if row.end >= oldest] for name, rows in sorted(drawn.items())}
    rows = [row for each in kept.values() for row in each]
    left_out = len(newest) - len(rows) + sum(panel.left_out for panel in panels)
    first = min([row.since or row.begin for row in rows], default=came) if left_out else came
    last = max([*(row.until or row.end for row in rows), first + _SHORTEST_WORK])
    ended = min(max([row.end for row in rows], default=came), now)
    lines = {name: _folded(each) for name, each in kept.items()}
    return Waterfall(came, ended, lines, _scale(first, last, rows), left_out)


def _folded(rows: Sequence[Row]) -> Lines:
    attempts = [n for n, row in enumerate(rows) if row.kind == "attempt"]
    first = attempts[-_UNFOLDED] if len(attempts) > _UNFOLDED else 0
    return Lines(rows[:first], rows[first:])


def _of_handler(found: ShownEvent, panel: Panel, now: datetime) -> Iterator[Row]:
    """Yield the waits and attempts of a handler, oldest first, each followed by its steps and calls."""
    run, before, cycle = panel.run, found.event.received_at, 1
    for wait in run.awaited:
        state = RunStatus.WAITING if wait.ended_at is None else RunStatus.DONE if wait.answer else "failed"
        awaited = f"for {wait.source} {wait.type}"
        target = anchor("run", run.handler)
        yield Row("awaited", wait.name, state, target, None, wait.ended_at or now, wait.since, awaited)
    steps = [step for step in found.steps if step.handler == run.handler]
    failed = [(each.number, _failed(each, run)) for each in reversed(panel.failures)]
    for number, row in [*failed, *_latest(run, now)]:
        reason = row.waited or ("backoff" if number[1] > 1 else "in the queue")
        yield replace(row, since=before if number[0] == cycle else None, waited=reason)
        mine = [step for step in steps if (row.start or step.started_at) <= step.started_at <= row.end]
        steps = [step for step in steps if step not in mine]
        parts = [
            Row(
                "step",
                step.name,
                step.status if step.status in {StepStatus.DONE, StepStatus.RUNNING} else "failed",
                anchor("step", f"{step.handler} {step.name}"),
                step.started_at,
                step.finished_at or row.end,
            )
            for step in mine
        ]
        yield from sorted([*parts, *_calls(panel, number, row.start)], key=lambda part: part.begin)
        before, cycle = row.end, number[0]


def _failed(failure: Failure, run: Run) -> Row:
    is_last = failure.number == (run.cycle, run.attempts)
    state = RunStatus.DEAD if is_last and run.status == RunStatus.DEAD else "failed"
    started = failure.row.started_at or (run.started_at if is_last and run.finished_at else None)
    name, target = numbered(*failure.number), failure.id("attempt")
    return Row("attempt", name, state, target, started, failure.row.failed_at)


def _latest(run: Run, now: datetime) -> Iterator[tuple[tuple[int, int], Row]]:
    """Yield the attempt that succeeded, is running or is to come."""
    number, target = (run.cycle, run.attempts), anchor("run", run.handler)
    row = Row("attempt", numbered(*number), run.status, target, run.started_at, run.finished_at or now)
    if run.status == RunStatus.DONE:
        yield number, row
    elif run.status == RunStatus.RUNNING:
        until = run.lease_until if run.lease_until and run.lease_until > now else None
        yield number, replace(row, end=now, until=until)
    elif run.status == RunStatus.WAITING:
        number = (run.cycle, run.attempts + 1)
        due = run.due_at if run.due_at and run.due_at > now and not run.parked else now
        reason = str(run.waits_for or "")
        yield number, replace(row, kind="next", name=numbered(*number), start=None, end=due, waited=reason)


def _calls(panel: Panel, number: tuple[int, int], begin: datetime | None) -> Iterator[Row]:
    """Yield the calls of other services that an attempt traced, which stand among its lines."""
    for each in panel.logs:
        for line in each.log.lines:
            if each.number == number and begin and line.took is not None:
                start = begin + timedelta(milliseconds=line.at)
                end = start + timedelta(milliseconds=line.took)
                yield Row("call", line.text, "failed" if line.level else RunStatus.DONE, each.id, start, end)


def _scale(first: datetime, last: datetime, rows: Iterable[Row]) -> Scale:
    """Lay out the time from the first moment to the last: work by its length, long pauses as gaps."""
    busy = _merged([(first, first), (last, last), *((row.begin, row.end) for row in rows)])
    at_work = max(sum((end - begin for begin, end in busy), timedelta()), _SHORTEST_WORK)
    pauses = [
        (end, begin)
        for (_, end), (begin, _) in itertools.pairwise(busy)
        if begin - end > max(at_work * _LONG_PAUSE, _SHORTEST_PAUSE)
    ]
    if pauses == [(first, last)]:
        pauses = []
    width = min(_GAP_WIDTH, 50 / len(pauses)) if pauses else 0.0
    drawn = last - first - sum((end - begin for begin, end in pauses), timedelta()) or _SHORTEST_WORK
    per_second = (100 - width * len(pauses)) / drawn.total_seconds()
    scale, x, at, labelled = Scale(), 0.0, first, -_LABEL_DISTANCE
    for begin, end in [*pauses, (last, last)]:
        right = x + (begin - at).total_seconds() * per_second
        scale.pieces.append((at, begin, x, right))
        if end > begin:
            scale.pieces.append((begin, end, right, right + width))
            is_labelled = right - labelled >= _LABEL_DISTANCE
            labelled = right if is_labelled else labelled
            scale.gaps.append(Gap(round(right, 2), round(width, 2), end - begin, is_labelled))
            right += width
        x, at = right, end
    return scale


def _merged(spans: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    found: list[tuple[datetime, datetime]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found
