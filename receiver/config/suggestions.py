"""Names that are known, and those that somebody may have meant, for errors about names that are not there."""

import difflib
from collections.abc import Iterable

ALERTS_SOURCE = "hookonce"
"""The source our own events come from; no configured one may have its name."""
_MAX_NAMES = 10
_OTHER_WORDS = {
    "dead": "crashed dlq error errored failed failing failure",
    "done": "completed delivered finished handled ok processed succeeded success successful",
    "waiting": "pending queued retry retrying scheduled",
    "running": "active processing started",
    "received": "accepted new",
    "ignored": "skipped unhandled",
    "open": "unresolved",
    "fixed": "closed resolved",
}
"""Word of a choice → words for it in other tools."""


def did_you_mean(word: str, known: Iterable[str], has: str = "there is") -> str:
    """Suggest the nearest of `known`, or say what there is; made to follow `no x is called 'y'`."""
    names = sorted(set(known))
    close = difflib.get_close_matches(word, names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"; {has} {', '.join(names[:_MAX_NAMES])}{more}" if names else f"; {has} none yet"


def not_one_of(word: object, choices: Iterable[str]) -> str:
    """Return the refusal of a word that is none of the choices, with the nearest of them."""
    every = [str(each) for each in choices]
    close = [each for each in every if str(word) in _OTHER_WORDS.get(each, "").split()]
    close = close or difflib.get_close_matches(str(word), every, n=1)
    meant = f"; did you mean '{close[0]}'?" if close else ""
    return f"{word!r} is not one of {', '.join(map(repr, every))}{meant}"


def no_source(name: str, known: Iterable[str]) -> str:
    """Return what is said of a name that no source has."""
    return f"no source is called {name!r}{did_you_mean(name, known)}; `hookonce sources list` shows all"
