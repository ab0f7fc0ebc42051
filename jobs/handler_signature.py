"""The signature of a handler: it asks for the transaction itself, or an ORM session in it; awaited if `async def`.

Annotations are told apart by the names of their classes, so that nobody who does without the ORM imports it.
"""

import dis
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_origin

_SQLALCHEMY = "sqlalchemy"
_PSYCOPG = "psycopg"
_DJANGO = "django.db."
_CONNECTIONS = {False: "Connection", True: "AsyncConnection"}
_SESSIONS = {False: "Session", True: "AsyncSession"}
_GIVEN = {*_CONNECTIONS.values(), *_SESSIONS.values()}
_SECOND = {"tx", "session", "connection"}
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class Signature:
    """How a handler is called; `session_class` is the user's own, where the annotation names one.

    `takes_driver`: psycopg's connection in the place of SQLAlchemy's.
    """

    is_async: bool = False
    takes_session: bool = False
    session_class: type | None = None
    takes_driver: bool = False


def signature_of(function: Callable[..., Any], given: str = "event") -> Signature:
    """Read how a handler is called; `given`: how errors call what it takes first.

    Raises `ValueError` saying what is wrong, `TypeError` where it does not take two arguments.
    """
    _require_plain(function, given)
    is_async = _is_coroutine_function(function)
    try:
        found = inspect.signature(function)
    except ValueError:  # written in C: it does not tell
        return Signature(is_async)
    found.bind(None, None)
    first, second = [*found.parameters.values(), None][:2]
    if first is None or first.kind not in _POSITIONAL or second is None or second.kind not in _POSITIONAL:
        return Signature(is_async)
    if first.name in _SECOND:
        raise ValueError(f"takes '{first.name}' first; a handler takes ({given}, tx) or ({given}, session)")
    annotation = _evaluated(function, second)
    library, kind = _kind(annotation)
    _require_understood(second.name, annotation, kind, given)
    _require_right_colour(kind, is_async=is_async)
    if second.name == "session" and kind in _CONNECTIONS.values():
        raise ValueError(f"calls {kind} 'session'; annotate it {_SESSIONS[is_async]}, or call it tx")
    takes_session = second.name == "session" or kind in _SESSIONS.values()
    session_class = (
        annotation if takes_session and isinstance(annotation, type) and kind is not None else None
    )
    return Signature(is_async, takes_session, session_class, takes_driver=library == _PSYCOPG)


def signature_of_long(function: Callable[..., Any]) -> Signature:
    """Read how a handler is called that opens its transactions itself, and takes the event alone.

    Raises `ValueError` saying what is wrong, `TypeError` where it does not take one argument.
    """
    _require_plain(function)
    if _is_coroutine_function(function):
        raise ValueError("is an async def; with tx='none' it is a plain function of (event)")
    try:
        found = inspect.signature(function)
    except ValueError:  # written in C: it does not tell
        return Signature()
    found.bind(None)
    return Signature()


def _require_plain(function: Callable[..., Any], given: str = "event") -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ValueError(f"is a generator; make it a function of ({given}, tx) that returns")


def uses_steps(function: Callable[..., Any]) -> bool:
    """Whether a handler's own code says `event.step`, whatever it calls its event; what it calls is not looked at."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or not code.co_varnames:
        return False
    before: Any = None
    for instruction in dis.get_instructions(code):
        if instruction.opname in {"LOAD_ATTR", "LOAD_METHOD"} and instruction.argval == "step":
            loaded = before.argval[-1] if isinstance(before.argval, tuple) else before.argval
            if before.opname.startswith("LOAD_") and loaded == code.co_varnames[0]:
                return True
        before = instruction
    return False


def _require_understood(name: str, annotation: object, kind: str | None, given: str) -> None:
    """Refuse a second argument that plainly expects something else."""
    if kind is None and _is_plain_class(annotation):
        raise ValueError(
            f"takes {inspect.formatannotation(annotation)}; annotate it Connection, SQLAlchemy's or "
            f"psycopg's, for ({given}, tx), or Session for an ORM session (Async… in an async def)"
        )
    if kind is None and name != "session" and "session" in name.lower():
        raise ValueError(
            f"calls its second argument '{name}'; for an ORM session call it session, or annotate it Session; "
            "for the connection call it tx"
        )


def _require_right_colour(kind: str | None, *, is_async: bool) -> None:
    for kinds in (_CONNECTIONS, _SESSIONS):
        if kind == kinds[not is_async]:
            what = "an async def" if is_async else "a plain function"
            raise ValueError(f"takes {kind}, but is {what}, which gets {kinds[is_async]}")


def _is_coroutine_function(function: Callable[..., Any]) -> bool:
    called = inspect.getattr_static(type(function), "__call__", None)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def _evaluated(function: Callable[..., Any], parameter: inspect.Parameter) -> object:
    """Return an annotation, itself if it is no text or its text means something where the function is."""
    if not isinstance(parameter.annotation, str):
        return parameter.annotation
    try:
        return inspect.signature(function, eval_str=True).parameters[parameter.name].annotation
    except Exception:  # noqa: BLE001  imported for type checkers only, or whatever the text does
        return parameter.annotation


def _kind(annotation: object) -> tuple[str | None, str | None]:
    """Return which of the things that handlers get this is, and whose; `Session` for a class derived from it."""
    if isinstance(annotation, str):
        library, _, name = annotation.partition("[")[0].rpartition(".")
        return (library, name) if name in _GIVEN else (None, None)
    for each in getattr(get_origin(annotation) or annotation, "__mro__", ()):
        library = each.__module__.partition(".")[0]
        if library in {_SQLALCHEMY, _PSYCOPG} and each.__name__ in _GIVEN:
            return library, str(each.__name__)
    return None, None


def _is_plain_class(annotation: object) -> bool:
    """Whether this is a class, and not one that fits anything; Django's worker gives connections of Django's."""
    if not isinstance(annotation, type) or annotation in {object, Any, inspect.Parameter.empty}:
        return False
    return not (getattr(annotation, "_is_protocol", False) or annotation.__module__.startswith(_DJANGO))
