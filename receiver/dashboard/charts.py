"""Bars of a chart, as numbers: the templates draw them as SVG, without a style or a script."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hookonce.receiver.dashboard import template_filters
from hookonce.receiver.desk.rows import Count

HEIGHT = 100.0
"""Height of a chart in its own units; a bucket is 10 wide, 8 of them the bar."""
BAR_STEP = 10
_MIN_BAR_HEIGHT = 1.5
"""How high a bar is that is not nothing."""


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
class Bar:
    """One bar: where it stands, and its title, shown when it is pointed at."""

    x: int
    y: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class Chart:
    """One kind of thing over the span: its bars, their sum, and the most per minute."""

    what: str
    bars: list[Bar]
    width: int
    total: int
    peak: float


class Table:
    """Counts by source and kind, each a list over the buckets; made in one pass."""

    def __init__(self, rows: Iterable[Count], begins: Sequence[datetime]) -> None:
        self._places = {begin: place for place, begin in enumerate(begins)}
        self._counts: dict[tuple[str, str], list[int]] = {}
        for at, source, what, count in rows:
            if at in self._places:
                self._of(source, what)[self._places[at]] += count

    @property
    def sources(self) -> set[str]:
        """The sources that something is counted of; '' stands for URLs that no source has."""
        return {source for source, _ in self._counts}

    def counts(self, what: str, source: str | None = None) -> list[int]:
        """Return one kind over the buckets, of one source or of all."""
        if source is not None:
            return self._counts.get((source, what)) or [0] * len(self._places)
        chosen = [counts for (_, kind), counts in self._counts.items() if kind == what]
        return [sum(each) for each in zip(*chosen, strict=True)] or [0] * len(self._places)

    def _of(self, source: str, what: str) -> list[int]:
        return self._counts.setdefault((source, what), [0] * len(self._places))


def chart(what: str, counts: Sequence[int], begins: Sequence[datetime], now: datetime) -> Chart:
    """Scale counts to bars; the highest fills the chart. `begins` has at least two buckets."""
    top = max(counts, default=0)
    minutes = (begins[1] - begins[0]) / timedelta(minutes=1)
    bars = [
        _bar(n, count, top, f"{template_filters.at(begin)[:-3]} UTC: {template_filters.count(count)} {what}")
        for n, (count, begin) in enumerate(zip(counts, begins, strict=True))
        if count
    ]
    begun = max((now - begins[-1]) / timedelta(minutes=1), 1.0)
    peak = max([counts[-1] / begun, *(count / minutes for count in counts[:-1])])
    return Chart(what, bars, len(counts) * BAR_STEP, sum(counts), peak)


def _bar(place: int, count: int, top: int, title: str) -> Bar:
    height = max(_MIN_BAR_HEIGHT, round(count / top * HEIGHT, 1))
    return Bar(place * BAR_STEP + 1, round(HEIGHT - height, 1), height, title)


def trends(hours: Mapping[datetime, int], now: datetime) -> list[tuple[Span, Chart]]:
    """Chart what failed by hour: the last day, then the last two weeks by day."""
    charts = []
    for span in (DAY, FORTNIGHT):
        begins = span.begins(now)
        counts = [0] * span.buckets
        for hour, count in hours.items():
            if begins[0] <= hour <= now:
                counts[(hour - begins[0]) // span.bucket] += count
        charts.append((span, chart("failed", counts, begins, now)))
    return charts
