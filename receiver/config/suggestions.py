"""Names that are known, and those that somebody may have meant, for errors about names that are not there."""

import difflib
from collections.abc import Iterable

ALERTS_SOURCE = "hookonce"
"""The source our own events come from; no configured one may have its name."""
_MAX_NAMES = 10


def did_you_mean(word: str, known: Iterable[str], has: str = "there is") -> str:
    """Suggest the nearest of `known`, or say what there is; made to follow `no x is called 'y'`."""
    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; {has} {', '.join(names[:_MAX_NAMES])}" if names else f"; {has} none yet"


def not_one_of(word: object, choices: Iterable[str]) -> str:
    """Return the refusal of a word that is none of the choices, with the nearest of them."""
    every = [str(each) for each in choices]
    close = difflib.get_close_matches(str(word), every, n=1)
    meant = f"; did you mean '{close[0]}'?" if close else ""
    return f"{word!r} is not one of {', '.join(map(repr, every))}{meant}"


def no_source(name: str, known: Iterable[str]) -> str:
    """Return what is said of a name that no source has."""
    return f"no source is called {name!r}{did_you_mean(name, known)}; `hookonce sources list` shows all"
