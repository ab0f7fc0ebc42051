"""What is kept of an error that a handler raised: its type, what it says, and the line of the user's code."""

import sys
import sysconfig
import traceback
from pathlib import Path

LONGEST = 1800
"""Characters of what an error says about itself."""

_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_OURS = {
    str(Path(__file__).with_name(name)) for name in ("execution.py", "guards.py", "alarm.py", "handlers.py")
}


def blame(error: BaseException) -> str:
    """Name an error and where it came from, `ValueError: no such customer (shop/handlers.py:12)`; no locals.

    What an error says about itself is a handler's code too: it may raise.
    """
    place = _place(error)
    return said(error) + (f" ({place})" if place else "")


def said(error: BaseException) -> str:
    """Give an error's type and what it says about itself, `ValueError: no such customer`."""
    try:
        return f"{type(error).__name__}: {error}".removesuffix(": ")[:LONGEST]
    except Exception:  # noqa: BLE001
        return type(error).__name__


def _place(error: BaseException) -> str | None:
    """Give file and line of the innermost frame that is neither ours nor a library's."""
    place = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        path = frame.f_code.co_filename
        if not path.startswith(("<", *_LIBRARIES)) and path not in _OURS:
            place = f"{_short(path)}:{line}"
    return place


def _short(path: str) -> str:
    """Give the path as seen from where its module was found."""
    homes = (home for home in sys.path if home and path.startswith(home.rstrip("/") + "/"))
    longest = max(homes, key=len, default="")
    return path[len(longest) :].lstrip("/") if longest else path
