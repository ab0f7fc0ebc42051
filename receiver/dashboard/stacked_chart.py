"""One chart of what came and what became of it: bars in layers, a line for what came, and a scale beside them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hookonce.receiver.dashboard import template_filters
from hookonce.receiver.dashboard.charts import BAR_STEP, HEIGHT, Table
from hookonce.receiver.ledger.states import EventStatus

LAYERS = (EventStatus.DONE, EventStatus.IGNORED, EventStatus.DEAD, "rejected")
"""From below; what needs a person lies on top."""
LINE = "accepted"
_LEAST = 1.0
"""How high a layer is that is not nothing."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A part of one bar."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One bucket: where it stands, its layers, and its title, shown when it is pointed at."""

    x: int
    layers: list[Layer]
    title: str


@dataclass(frozen=True, slots=True)
class StackedChart:
    """`scale` are the numbers at the lines, the highest first; `line` the points of what came; totals by kind."""

    bars: list[Bar]
    line: str
    width: int
    scale: list[int]
    totals: dict[str, int]


def stacked(table: Table, begins: Sequence[datetime], bucket: timedelta, source: str | None) -> StackedChart:
    """Stack what ended in each bucket; scaled to a round number above the highest."""
    counts = {kind: table.counts(kind, source) for kind in (LINE, *LAYERS)}
    heights = [sum(counts[kind][n] for kind in LAYERS) for n in range(len(begins))]
    top = round_above(max([*heights, *counts[LINE]], default=0))
    bars = []
    for n, begin in enumerate(begins):
        layers = _layers({kind: counts[kind][n] for kind in LAYERS}, top)
        if layers or counts[LINE][n]:
            bars.append(
                Bar(n * BAR_STEP + 1, layers, _title(begin, bucket, {k: v[n] for k, v in counts.items()}))
            )
    points = [
        f"{n * BAR_STEP + x},{HEIGHT * (1 - count / top):.1f}"
        for n, count in enumerate(counts[LINE])
        for x in (0, BAR_STEP)
    ]
    totals = {kind: sum(each) for kind, each in counts.items()}
    return StackedChart(bars, " ".join(points), len(begins) * BAR_STEP, [top, top // 2, 0], totals)


def round_above(number: int) -> int:
    """Return 2, or the next even one of 1, 2, 4, 6, 10 times a power of ten: a scale that can be halved."""
    if number <= 2:  # noqa: PLR2004  the least scale
        return 2
    power = int(10 ** math.floor(math.log10(number)))
    steps = (step * power for step in (1, 2, 4, 6, 10))
    return next(step for step in steps if step >= number and step % 2 == 0)


def _layers(counts: dict[str, int], top: int) -> list[Layer]:
    layers, ground = [], HEIGHT
    for kind, count in counts.items():
        if count:
            height = max(_LEAST, round(count / top * HEIGHT, 2))
            ground -= height
            layers.append(Layer(kind, round(ground, 2), height))
    return layers


def _title(begin: datetime, bucket: timedelta, counts: dict[str, int]) -> str:
    told = ", ".join(f"{template_filters.count(count)} {kind}" for kind, count in counts.items() if count)
    return f"{template_filters.at(begin)[:-3]} UTC, {template_filters.span(bucket)}: {told}"
