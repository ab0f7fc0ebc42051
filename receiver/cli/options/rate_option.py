"""How fast, as people write it: `20/s`, `600/m`, `5000/h`; and the clock that keeps to it."""

import re
import time
from collections.abc import Callable

import click

_FORM = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)/([smh])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def rate(text: str) -> float:
    """Read a rate; gives events per second. Raises: ValueError saying what was expected."""
    parts = _FORM.fullmatch(text.strip().lower())
    if parts is None or not float(parts[1]):
        raise ValueError(
            f"{text!r} is not a rate; expected a number above 0 per second, minute or hour: 20/s, 600/m"
        )
    return float(parts[1]) / _SECONDS[parts[2]]


class Rate(click.ParamType):  # type: ignore[type-arg]  # older versions of click take no argument
    """The type of `--rate`."""

    name = "rate"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the option; a usage error where it can't be read."""
        try:
            return value if isinstance(value, float) else rate(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Pace:
    """Says how many may be taken now; what was not taken in time is not caught up on, but for a second's worth."""

    def __init__(self, per_second: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = per_second
        self._clock = clock
        self._at = clock()
        self._allowed = 1.0

    def take(self, most: int) -> int:
        """Return how many the rate allows now, at most `most`, and count them; 0 where none is due yet."""
        if self._rate is None:
            return most
        now = self._clock()
        self._allowed = min(self._allowed + (now - self._at) * self._rate, max(self._rate, 1.0))
        self._at = now
        taken = min(int(self._allowed), most)
        self._allowed -= taken
        return taken

    def pause(self) -> float:
        """Return in how many seconds the next one is due."""
        return 0.0 if self._rate is None else max((1 - self._allowed) / self._rate, 0.0)
