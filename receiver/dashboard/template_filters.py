"""How values stand on a page: times, spans, numbers, and text that a sender wrote."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from markupsafe import Markup, escape

from hookonce.receiver.dashboard.highlighting import as_code, highlighted

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_INVISIBLE = "\N{REPLACEMENT CHARACTER}"
_NONE = "\N{EN DASH}"
_KIB = 1024
_THOUSAND = 1000
_FEW = 3


def at(moment: datetime | None) -> str:
    """Return a time in UTC, to the second; a dash for none."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if moment else _NONE


def exact(moment: datetime | None) -> str:
    """Return a time in UTC, to the millisecond; a dash for none."""
    return at(moment) + f"{moment.astimezone(UTC):.%f}"[:4] if moment else _NONE


def iso(moment: datetime) -> str:
    """Return a time as machines read it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


def ago(moment: datetime | None, now: datetime) -> str:
    """Return how long ago a time was, or how soon it will be."""
    if moment is None:
        return _NONE
    seconds = (now - moment).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"{span(seconds)} ago" if seconds > 0 else f"in {span(-seconds)}"


def span(length: float | timedelta | None) -> str:
    """Return a span (a timedelta, or seconds) in its largest unit, the next one too where it matters."""
    if length is None:
        return _NONE
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    if seconds < 1:
        return f"{seconds * _THOUSAND:.0f} ms"
    if seconds < 10:  # noqa: PLR2004  where a tenth still tells something
        return f"{seconds:.1f} s"
    n, (size, unit) = next((n, step) for n, step in enumerate(_UNITS) if seconds >= step[0])
    whole, rest = divmod(int(seconds), size)
    if whole < _FEW and unit != "s":
        smaller, its_unit = _UNITS[n + 1]
        return f"{whole} {unit} {rest // smaller} {its_unit}" if rest >= smaller else f"{whole} {unit}"
    return f"{whole} {unit}"


def count(number: float | None) -> str:
    """Return a number with its thousands apart."""
    return _NONE if number is None else f"{number:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def short(number: float) -> str:
    """Return a number in few characters: 950, 1.2k, 34M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            scaled = number / size
            return f"{scaled:.1f}{unit}" if scaled < 10 else f"{scaled:.0f}{unit}"  # noqa: PLR2004
    return f"{number:.0f}"


def size(number: int) -> str:
    """Return how many bytes, in the unit that fits."""
    if number < _KIB:
        return f"{number} B"
    return f"{number / _KIB:.1f} KiB" if number < _KIB**2 else f"{number / _KIB**2:.1f} MiB"


def percent(part: float) -> str:
    """Return a share of one as a percentage."""
    return "0 %" if not part else "< 0.1 %" if part < 0.001 else f"{part:.1%}".replace("%", " %")  # noqa: PLR2004


def plain(text: object) -> str:
    """Return what a sender wrote without anything that a page obeys: escapes, overrides of the writing direction."""
    said = str(text)
    if said.isprintable():  # most are, and a page has thousands
        return said
    return "".join(sign if sign.isprintable() or sign in "\n\t" else _INVISIBLE for sign in said)


def coded(text: str) -> Markup:
    """Return a text of ours with what stands in backticks as code; whatever else it holds is escaped."""
    parts = plain(text).split("`")
    if len(parts) % 2 == 0:  # one has no other
        return escape(plain(text))
    return Markup().join(
        Markup("<code>{}</code>").format(part) if n % 2 else escape(part) for n, part in enumerate(parts)
    )


def as_json(value: object) -> str:
    """Write a value as JSON, for reading."""
    return json.dumps(
        value, ensure_ascii=False, indent=2 if isinstance(value, dict | list) and len(value) > 1 else None
    )


FILTERS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        at,
        exact,
        iso,
        ago,
        span,
        count,
        short,
        size,
        percent,
        plain,
        coded,
        as_json,
        highlighted,
        as_code,
    )
}
"""Filters of the templates, by name."""
