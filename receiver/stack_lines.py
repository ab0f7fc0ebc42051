"""What a person sees of the children's logs: a line per delivery, run and ignored event, and whatever went wrong.

The children log JSON objects; anything else they write (a handler's `print`, a message before logging is set
up) is shown as it is. Names and ids come from senders, so nothing that a terminal would obey gets through.
"""

import json
import logging
import time
from collections.abc import Mapping
from typing import Any


def readable(line: str) -> str | None:
    """Turn a line of a child's output into what is shown of it; None for nothing."""
    if not line.strip():
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return _harmless(line)
    if not isinstance(record, dict) or "message" not in record:
        return _harmless(line)
    shape = _SHAPES.get(str(record["message"]))
    text = shape(record) if shape else _other(record)
    return None if text is None else _harmless(f"{time.strftime('%H:%M:%S')}  {text}")


def _delivery(record: Mapping[str, Any]) -> str:
    ids = record.get("event_ids") or []
    rest = int(record.get("events") or 0) - len(ids)
    return _columns(record, record.get("status"), " ".join(ids) + (f" and {rest} more" if rest > 0 else ""))


def _rejected(record: Mapping[str, Any]) -> str:
    return _columns(record, "rejected", record.get("reason"))


def _conflict(record: Mapping[str, Any]) -> str:
    return _columns(record, "conflict", f"event {record.get('event')} came again with another body")


def _run(record: Mapping[str, Any]) -> str:
    what = f"{record.get('type')}  {record.get('handler')}"
    tail = f"attempt {record.get('attempt')}"
    if record.get("status") != "done":
        tail += f"; why: hookonce events show {record.get('event')}"
    return _columns(record, record.get("status"), f"{what}  ({tail})")


def _ignored(record: Mapping[str, Any]) -> str:
    return _columns(
        record, "ignored", f"{record.get('type')}  no handler takes it (event {record.get('event')})"
    )


def _alert(record: Mapping[str, Any]) -> str:
    what = f"{record.get('kind')} {record.get('status')}: {record.get('detail')}"
    return f"{record.get('subject') or '(inbox)':<12}  {'alert':<9}  {what}"


def _columns(record: Mapping[str, Any], status: object, rest: object) -> str:
    return f"{record.get('source') or '(unknown)':<12}  {status!s:<9}  {rest}".rstrip()


def _other(record: Mapping[str, Any]) -> str | None:
    level = str(record.get("level", ""))
    if logging.getLevelNamesMapping().get(level, logging.WARNING) < logging.WARNING:
        return None
    trace = record.get("exc_info")
    return f"{level.lower()}: {record['message']}" + (f"\n{trace}" if trace else "")


def _harmless(text: str) -> str:
    return "".join(
        sign if sign.isprintable() or sign in "\n\t" else "\N{REPLACEMENT CHARACTER}" for sign in text
    )


_SHAPES = {
    "delivery": _delivery,
    "rejected": _rejected,
    "conflict": _conflict,
    "run": _run,
    "ignored": _ignored,
    "alert": _alert,
}
