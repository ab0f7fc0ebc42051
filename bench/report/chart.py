"""A run as a picture: bars for rates, and for each target how far it is from floor and aim. Plain SVG."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from bench.report.figures import GROWTH, RATES, TARGETS, Figure
from bench.report.words import cpu_to_empty, number

WIDTH, ROW, LEFT, RIGHT = 960, 24, 440, 140
_SPAN = WIDTH - LEFT - RIGHT
_COLOURS = {"aim": "#2e8b57", "floor": "#d9a441", "missed": "#c0504d", "": "#5b7fa6"}
_MOST = 1.5  # times the aim: longer bars are cut


def draw(found: Mapping[str, Any]) -> str:
    """Draw the targets first, then the rates."""
    parts: list[str] = []
    y = _title(
        parts, 24, "Targets: bar = value, thin mark = floor, thick mark = aim (shorter is better for ms, MB)"
    )
    for figure, one in _found(found, TARGETS + GROWTH):
        if figure.aim:
            y = _target(parts, y, figure, one)
    y = _title(parts, y + 20, "Events, requests or rows a second, and CPU ÷ an empty request's")
    rates = list(_found(found, RATES))
    top = max(
        (one["value"] for figure, one in rates if not figure.name.startswith(("redis_", "pgbench"))),
        default=1,
    )
    for figure, one in rates:
        share = min(one["value"] / top, 1)
        y = _bar(parts, y, one, share, _rate_colour(figure), cpu_to_empty(found, figure))
    stamp = f"{found['date']}, {found['machine']['cores']} cores, {found['machine']['processor']}"
    y = _title(parts, y + 20, stamp)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" font-family="sans-serif">'
    ground = f'<rect width="{WIDTH}" height="{y}" fill="#ffffff"/>'
    return "\n".join([head, ground, *parts, "</svg>", ""])


def _found(found: Mapping[str, Any], figures: Iterable[Figure]) -> Iterable[tuple[Figure, Mapping[str, Any]]]:
    return ((f, found["figures"][f.name]) for f in figures if f.name in found["figures"])


def _title(parts: list[str], y: int, text: str) -> int:
    parts.append(f'<text x="12" y="{y}" font-size="13" font-weight="bold" fill="#222">{escape(text)}</text>')
    return y + 12


def _target(parts: list[str], y: int, figure: Figure, one: Mapping[str, Any]) -> int:
    aim, floor = figure.aim or 1, figure.floor or 1
    longest = max(aim, floor) * _MOST
    below = _bar(parts, y, one, min(one["value"] / longest, 1), _COLOURS[one["verdict"]])
    for mark, width in ((floor, 1), (aim, 3)):
        x = LEFT + _SPAN * mark / longest
        parts.append(
            f'<rect x="{x - width / 2:.1f}" y="{y}" width="{width}" height="{ROW - 4}" fill="#222"/>'
        )
    return below


def _bar(  # noqa: PLR0913, PLR0917
    parts: list[str], y: int, one: Mapping[str, Any], share: float, colour: str, beside: str = ""
) -> int:
    label, value = escape(one["title"]), f"{number(one['value'])} {one['unit']}".strip()
    value += f" · {beside}" if beside else ""
    middle = y + 15
    parts.append(
        f'<text x="{LEFT - 8}" y="{middle}" font-size="12" text-anchor="end" fill="#222">{label}</text>'
        f'<rect x="{LEFT}" y="{y + 3}" width="{max(_SPAN * share, 1):.1f}" height="{ROW - 10}" fill="{colour}"/>'
        f'<text x="{WIDTH - RIGHT + 8}" y="{middle}" font-size="12" fill="#222">{escape(value)}</text>'
    )
    return y + ROW


def _rate_colour(figure: Figure) -> str:
    if figure.name.startswith("obvious"):
        return "#b07aa1"
    if figure.name.startswith(("empty", "raw", "flask", "pgbench", "redis_single", "redis_batch")):
        return "#aaaaaa"  # what others do, or nothing
    return "#5b7fa6"
