"""Charts as numbers, which the templates draw as SVG, without a style or a script: bars in layers, and a line."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hookonce.receiver.dashboard.template_filters import at, count
from hookonce.receiver.desk.rows import Count

HEIGHT = 100.0
"""Height of a chart in its own units; a bucket is 10 wide, 8 of them the bar."""
BAR_STEP = 10
_LEAST = 1.5
"""Height of a layer of few beside many."""


@dataclass(frozen=True, slots=True)
class Span:
    """The span of the charts: `buckets` of `bucket` each, the last one not over yet."""

    name: str
    bucket: timedelta
    buckets: int

    def begins(self, now: datetime) -> list[datetime]:
        """Return when each bucket begins, oldest first; whole multiples of `bucket` since midnight, UTC."""
        newest = now - (now - datetime(1970, 1, 1, tzinfo=UTC)) % self.bucket
        return [newest - self.bucket * n for n in reversed(range(self.buckets))]


SPANS = {
    each.name: each
    for each in (
        Span("1h", timedelta(minutes=1), 60),
        Span("24h", timedelta(minutes=15), 96),
        Span("7d", timedelta(hours=2), 84),
    )
}

DAY = Span("24 h", timedelta(hours=1), 24)
FORTNIGHT = Span("14 d", timedelta(days=1), 14)


@dataclass(frozen=True, slots=True)
class Layer:
    """A part of one bar."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One bucket: its place, its layers, and its title, shown when it is pointed at."""

    x: int
    layers: list[Layer]
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    """`line` has the points of the line; `top` is the number at the upper edge, `totals` the sums by kind."""

    bars: list[Bar]
    line: str
    width: int
    top: int
    totals: dict[str, int]


class Table:
    """Counts by source and kind, each a list over the buckets; made in one pass."""

    def __init__(self, rows: Iterable[Count], begins: Sequence[datetime]) -> None:
        self._places = {begin: place for place, begin in enumerate(begins)}
        self._counts: dict[tuple[str, str], list[int]] = {}
        for moment, source, what, number in rows:
            if moment in self._places:
                counts = self._counts.setdefault((source, what), [0] * len(self._places))
                counts[self._places[moment]] += number

    @property
    def sources(self) -> set[str]:
        """The sources that something is counted of; '' stands for URLs that no source has."""
        return {source for source, _ in self._counts}

    def counts(self, what: str, source: str | None = None) -> list[int]:
        """Return one kind over the buckets, of one source or of all."""
        chosen = [
            counts
            for (named, kind), counts in self._counts.items()
            if kind == what and source in {None, named}
        ]
        return [sum(each) for each in zip(*chosen, strict=True)] or [0] * len(self._places)


def chart(counts: Mapping[str, Sequence[int]], begins: Sequence[datetime], line: str = "") -> Chart:
    """Draw the counts of each kind as layers, the first one lowest, and those of one kind as a line."""
    stacks = [{kind: each[n] for kind, each in counts.items() if kind != line} for n in range(len(begins))]
    lined = counts.get(line, ())
    top = round_above(max([*(sum(each.values()) for each in stacks), *lined], default=0))
    bars = []
    for n, (begin, stack) in enumerate(zip(begins, stacks, strict=True)):
        said = ", ".join(f"{count(each[n])} {kind}" for kind, each in counts.items() if each[n])
        if said:
            bars.append(Bar(n * BAR_STEP + 1, _layers(stack, top), f"{at(begin)[:-3]} UTC: {said}"))
    points = [
        f"{n * BAR_STEP + x},{HEIGHT * (1 - number / top):.1f}"
        for n, number in enumerate(lined)
        for x in (0, BAR_STEP)
    ]
    totals = {kind: sum(each) for kind, each in counts.items()}
    return Chart(bars, " ".join(points), len(begins) * BAR_STEP, top, totals)


def _layers(stack: Mapping[str, int], top: int) -> list[Layer]:
    layers, ground = [], HEIGHT
    for kind, number in stack.items():
        if number:
            height = max(_LEAST, round(number / top * HEIGHT, 2))
            ground -= height
            layers.append(Layer(kind, round(ground, 2), height))
    return layers


def round_above(number: int) -> int:
    """Return 2, or the next even one of 1, 2, 4, 6, 10 times a power of ten: a scale that can be halved."""
    if number <= 2:  # noqa: PLR2004  the least scale
        return 2
    power = int(10 ** math.floor(math.log10(number)))
    steps = (step * power for step in (1, 2, 4, 6, 10))
    return next(step for step in steps if step >= number and step % 2 == 0)


def trends(hours: Mapping[datetime, int], now: datetime) -> list[tuple[Span, Chart]]:
    """Chart failures by hour: the last day, then the last two weeks by day."""
    charts = []
    for span in (DAY, FORTNIGHT):
        begins = span.begins(now)
        counts = [0] * span.buckets
        for hour, number in hours.items():
            if begins[0] <= hour <= now:
                counts[(hour - begins[0]) // span.bucket] += number
        charts.append((span, chart({"failed": counts}, begins)))
    return charts
