"""The summary of an error that a handler raised: its type, its text, and the line of the user's code.

What a database says may quote values: SQLAlchemy the parameters of a statement, PostgreSQL a row's in its DETAIL.
Neither is kept in the clear.
"""

import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

MAX_MESSAGE_LENGTH = 1800
"""Characters of what an error says about itself."""
LEFT_OUT = "(left out: it may quote values)"

_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_PACKAGE = f"{Path(__file__).parents[2]}/"
_OURS = tuple(str(Path(__file__).parents[1] / name) for name in ("attempts", "handlers.py"))
CYTHON = (".pyx", ".pxd", ".pxi")
_PARAMETERS = re.compile(r"^\[(?:SQL: )?parameters: .*$", re.MULTILINE)
_DETAIL = re.compile(r"^(D[EÉ]TAIL|CONTEXT) ?:(?! *\(left out).*$", re.MULTILINE)
_MAX_LINKS = 100
"""Errors that are followed from one to what caused it."""
cause_of, context_of, suppresses_context, traceback_of = (
    BaseException.__dict__[name].__get__
    for name in ("__cause__", "__context__", "__suppress_context__", "__traceback__")
)
"""An error's causes, and where it was raised, whatever properties its class has."""
_END_OF_PLACE = re.compile(r"(\.pyx?:\d+)\)")


def summarize(error: BaseException, cleaned: Callable[[str], str] = str) -> str:
    """Return an error's name and where it came from, `ValueError: no such customer (shop/handlers.py:12)`; no locals.

    What an error says about itself is a handler's code too: it may raise.
    """
    location = _location(error)
    return message_of(error, cleaned=cleaned) + (f" ({location})" if location else "")


def whereabouts(error: BaseException) -> str:
    """Return an error's name and where it came from, and nothing that it says: for logs."""
    location = _location(error)
    return type(error).__name__ + (f" ({location})" if location else "")


def message_of(
    error: BaseException, *, with_details: bool = False, cleaned: Callable[[str], str] = str
) -> str:
    """Return an error's type and what it says about itself, `ValueError: no such customer`.

    It is what `whole_message_of` gives, cut. `cleaned` makes it fit to be kept before, so that half a secret never
    stays. Nothing in it looks like the place where an error was raised, which readers without `bodies` see.
    """
    try:
        text = cleaned(whole_message_of(error, with_details=with_details))
        return _END_OF_PLACE.sub(r"\1 )", text)[:MAX_MESSAGE_LENGTH]
    except BaseException:  # noqa: BLE001  its class is the user's code, which raises anything
        return type(error).__name__


def whole_message_of(error: BaseException, *, with_details: bool = False) -> str:
    """Return an error's type and all that it says about itself, which is a handler's code too: it may raise.

    Parameters of statements are left out, and DETAIL lines of the database unless `with_details`.
    """
    for each in linked(error):
        if hasattr(each, "hide_parameters"):  # a statement's, of an engine of the user's
            each.hide_parameters = True
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    text = _PARAMETERS.sub("[parameters left out]", text)
    return text if with_details else _without_details(text, linked(error))


def linked(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came from, whether it is shown or not, and what it wraps."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left and len(seen) < _MAX_LINKS:
        each = left.pop()
        if isinstance(each, BaseException) and id(each) not in seen:
            seen.add(id(each))
            yield each
            left += [cause_of(each), context_of(each), getattr(each, "orig", None)]


def is_library(path: str) -> bool:
    """Whether a file is no code of the user's: the standard library's, an installed package's, or ours.

    Frames of Cython name a source that is not there, by a path that begins anywhere.
    """
    return path.startswith(("<", *_LIBRARIES, *_OURS)) or path.endswith(CYTHON)


def is_users(path: str) -> bool:
    """Whether a file is code of the user's: no library's, and of no part of this package."""
    return not is_library(path) and not path.startswith(_PACKAGE)


def is_ours(path: str) -> bool:
    """Whether a file is one that calls handlers."""
    return path.startswith(_OURS)


def _without_details(text: str, errors: Iterable[BaseException]) -> str:
    """Leave out what PostgreSQL says in detail: word for word where that is known, for it may have any lines."""
    for error in errors:
        diagnosis = getattr(error, "diag", None)
        for said in (getattr(diagnosis, "message_detail", None), getattr(diagnosis, "context", None)):
            if said:
                text = text.replace(f"  {said}", f"  {LEFT_OUT}")
    return _DETAIL.sub(rf"\1:  {LEFT_OUT}", text)


def _location(error: BaseException) -> str | None:
    """Return file and line of the innermost frame that is neither ours nor a library's."""
    location = None
    for frame, line in traceback.walk_tb(traceback_of(error)):
        path = frame.f_code.co_filename
        if not is_library(path):
            location = f"{path.removeprefix(home_of(path))}:{line}"
    return location


def home_of(path: str) -> str:
    """Return the folder that a file's module was found in, with its slash; empty where that is not known."""
    return _home_of(path, tuple(sys.path))


@lru_cache(maxsize=1024)
def _home_of(path: str, folders: Sequence[str]) -> str:
    homes = (f"{home.rstrip('/')}/" for home in folders if home)
    return max((home for home in homes if path.startswith(home)), key=len, default="")
