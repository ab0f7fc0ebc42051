"""How fast, as people write it: `20/s`, `600/m`, `5000/h`."""

import re

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
