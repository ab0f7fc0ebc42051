"""An event as a test of the handlers that took it: the shipped sample of its type, and what this body has otherwise."""

import json
import re
from collections.abc import Iterator
from datetime import datetime

from hookonce.receiver.desk.rows import Event
from hookonce.receiver.samples import files

MAX_VALUES = 30
"""Values that a test sets; more would hide what it is about."""
_MAX_LENGTH = 300
_NAME = re.compile(r"[^a-z0-9]+")
_STEP = re.compile(r"[^.=\[\]]+")
_UNIX_TIMES = range(1_000_000_000, 4_000_000_000)


def as_test(event: Event, body: bytes) -> str | None:
    """Write a test for `hookonce.testing`; None where there is no sample of this type, or the body is not JSON.

    Ids and times that the sample makes anew each time stay as it makes them.
    """
    try:
        sample = files.sample(event.provider, event.type)
        document = json.loads(body)
    except (LookupError, ValueError, RecursionError):
        return None
    if sample is None or sample.form != "json":
        return None
    anew: set[object] = {sample.id, *sample.fresh}
    changed = list(_changes("", sample.body, document, anew))
    changed = [(path, value) for path, value in changed if value != event.event_id]
    lines = [f"                {_literal(path)}: {_literal(value)}," for path, value in changed[:MAX_VALUES]]
    if len(changed) > MAX_VALUES:
        lines.append(
            f"                # and {len(changed) - MAX_VALUES} more values that differ from the sample"
        )
    given = ["            set={", *lines, "            },"] if lines else []
    if event.source != event.provider:
        given.append(f"            provider={_literal(event.provider)},")
    return "\n".join(
        [
            "from hookonce.testing import handled_once",
            "",
            "",
            f"def test_{_NAME.sub('_', event.type.lower()).strip('_') or 'event'}(inbox):",
            "    handled_once(",
            "        inbox.deliver(",
            f"            {_literal(event.source)},",
            f"            {_literal(event.type)},",
            *given,
            "        )",
            "    )",
            "",
        ]
    )


def _changes(path: str, before: object, after: object, anew: set[object]) -> Iterator[tuple[str, object]]:
    """Yield the paths, and the values there, of what is other than in the sample, or not in it."""
    if isinstance(after, dict) and after and isinstance(before, dict | None):
        for key, value in after.items():
            if _STEP.fullmatch(key):
                sample = before.get(key) if before else None
                yield from _changes(_joined(path, key), sample, value, anew)
    elif isinstance(after, list) and isinstance(before, list) and len(before) == len(after):
        for n, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _changes(_joined(path, str(n)), one, other, anew)
    elif (
        path and before != after and not _is_made_anew(before, after, anew) and len(str(after)) <= _MAX_LENGTH
    ):
        yield path, after


def _joined(path: str, step: str) -> str:
    return f"{path}.{step}" if path else step


def _is_made_anew(before: object, after: object, anew: set[object]) -> bool:
    is_id = isinstance(before, str | int) and before in anew
    return is_id or (_is_time(before) and _is_time(after))


def _is_time(value: object) -> bool:
    if isinstance(value, int):
        return value in _UNIX_TIMES or value // 1000 in _UNIX_TIMES
    try:
        return (
            isinstance(value, str) and len(value) >= len("2026-01-31") and bool(datetime.fromisoformat(value))
        )
    except ValueError:
        return False


def _literal(value: object) -> str:
    """Write a value as Python that black would leave alone."""
    if not isinstance(value, str):
        return repr(value)
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in quoted
    )
