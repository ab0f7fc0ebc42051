"""What a command may raise besides the errors of what it calls; `receiver.cli.exits` knows the exit codes."""

import difflib
from collections.abc import Iterable


class NotFound(Exception):  # noqa: N818  a state of the world
    """There is nothing of the name or id that was given; exit 4."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the nearest of `known`, or say what there is; made to follow `no x is called 'y'`."""
    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; there is {', '.join(names[:10])}" if names else "; there is none yet"
