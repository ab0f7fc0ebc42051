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
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"; {has} {', '.join(names[:_MAX_NAMES])}{more}" if names else f"; {has} none yet"


def no_source(name: str, known: Iterable[str]) -> str:
    """Return what is said of a name that no source has."""
    return read_on(
        f"no source is called {name!r}{did_you_mean(name, known)}", "`hookonce sources list` shows all"
    )


def unknown_handler(name: str, known: Iterable[str]) -> str:
    """Return what is said of a name that no handler has."""
    return read_on(
        f"no handler is called {name!r}{did_you_mean(name, known)}", "`hookonce handlers list` shows all"
    )


def read_on(refusal: str, more: str) -> str:
    """Append where to read on to a refusal, which may end with a question."""
    return f"{refusal}{'' if refusal.endswith('?') else ';'} {more}"
