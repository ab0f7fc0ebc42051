"""The traceback of a failed attempt, as it is kept: whole, with its causes, without values, and of a bounded length.

As Python prints it, but for the frames that lead to the handler: those are ours. The oldest frames of each error are
cut first; of very many errors, those in the middle.
"""

import sysconfig
import traceback
from textwrap import indent
from traceback import StackSummary

from hookonce.jobs.error_summary import is_ours, message_of

MAX_LENGTH = 16_000
"""Characters of a traceback that is kept."""

_FRAMES = (60, 30, 15, 8, 4, 2, 1)
_MAX_CHAIN = 10
_MAX_GROUP = 10
_MAX_DEPTH = 3
_MAX_CAUSES = 10_000
_LOOP = tuple(f"{sysconfig.get_path('stdlib')}/{name}" for name in ("asyncio/", "contextlib.py"))
_HEAD = 4_000  # characters of the beginning, where even the messages alone are too long
_CUT = "\n(cut here)\n"
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"


def traceback_text(error: BaseException, *, with_details: bool = False) -> str | None:
    """Return the traceback of an error and its causes; None where there is nothing but our own code.

    Parameters of statements are left out, and DETAIL lines of the database unless `with_details`. Raises nothing.
    """
    try:
        if error.__cause__ is None and error.__context__ is None and not _frames(error, 1)[0]:
            return None
        for limit in _FRAMES:
            text = _chain_text(error, limit, with_details=with_details)
            if len(text) <= MAX_LENGTH:
                return text
    except Exception:  # noqa: BLE001  an exception's class is the user's code too
        return None
    return text[:_HEAD] + _CUT + text[len(_CUT) + _HEAD - MAX_LENGTH :]


def _chain_text(error: BaseException, limit: int, *, with_details: bool, depth: int = 0) -> str:
    chain = _chain(error)
    kept, cut = chain, 0
    if len(chain) > _MAX_CHAIN:
        half = _MAX_CHAIN // 2
        kept, cut = chain[:half] + chain[-half:], len(chain) - _MAX_CHAIN
    parts = []
    for number, (each, link) in enumerate(kept):
        if cut and number == _MAX_CHAIN // 2:
            parts.append(f"\n({cut} more exceptions between these)\n\n")
        parts.append(_own_text(each, limit, with_details=with_details, depth=depth))
        parts.append(link)
    return "".join(parts)


def _chain(error: BaseException) -> list[tuple[BaseException, str]]:
    """Return an error after what it came from, each with the words that lead to the next."""
    chain: list[tuple[BaseException, str]] = []
    seen, link = set[int](), ""
    each: BaseException | None = error
    while each is not None and id(each) not in seen and len(chain) < _MAX_CAUSES:
        seen.add(id(each))
        chain.append((each, link))
        if each.__cause__ is not None:
            each, link = each.__cause__, _CAUSE
        else:
            each, link = None if each.__suppress_context__ else each.__context__, _CONTEXT
    return chain[::-1]


def _own_text(error: BaseException, limit: int, *, with_details: bool, depth: int) -> str:
    frames, older = _frames(error, limit)
    head = ["Traceback (most recent call last):\n"] if frames else []
    if older:
        head.append(f"  ({older} older frames are left out)\n")
    message = _qualified(error, message_of(error, with_details=with_details))
    notes = [note for note in getattr(error, "__notes__", ()) if isinstance(note, str)]
    text = "".join([*head, *frames.format(), "\n".join([message, *notes]), "\n"])
    if isinstance(error, BaseExceptionGroup) and depth < _MAX_DEPTH:
        for number, inner in enumerate(error.exceptions[:_MAX_GROUP], 1):
            inner_text = _chain_text(inner, limit, with_details=with_details, depth=depth + 1)
            text += f"  ---- {number} of {len(error.exceptions)} ----\n" + indent(inner_text, "    ")
    return text


def _frames(error: BaseException, limit: int) -> tuple[StackSummary, int]:
    """Return the newest frames from the handler's on, and how many are older."""
    whole = list(traceback.walk_tb(error.__traceback__))
    while whole and (is_ours(path := whole[0][0].f_code.co_filename) or path.startswith(_LOOP)):
        del whole[0]
    return StackSummary.extract(iter(whole[-limit:])), max(len(whole) - limit, 0)


def _qualified(error: BaseException, message: str) -> str:
    """Return a message with the module of the error's class in front, unless that is built in."""
    module = type(error).__module__
    return message if module in {"builtins", "__main__"} else f"{module}.{message}"
