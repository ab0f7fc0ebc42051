"""Lines for a person of the children's logs: one per delivery, run, batch and ignored event, and what went wrong.

The children log JSON objects, handlers' lines among them, which are all shown; anything else they write (a handler's
`print`, a message before logging is set up) is shown as it is. Names and ids come from senders, so nothing that a
terminal would obey gets through.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hookonce.receiver.ledger.states import EventStatus, RunStatus

_WRITTEN = {"time", "level", "logger", "message"}
_KNOWN = {*_WRITTEN, "exc_info", "stack_info", "taskName"}
_OUR_MACHINERY = {"hookonce", "rq", "gunicorn", "alembic"}
_WHOSE = {"source", "handler", "event", "client"}
"""What is shown besides the message of a warning of ours."""
_FURTHER = "\n    "
"""Begins the further lines of a record: none of them can pass for a line of its own."""


class FailedRun(NamedTuple):
    """An attempt of a run."""

    event: int
    handler: str
    attempt: int


Paint = Callable[[str, str], str]
"""Takes a status and the text that stands for it, and returns that text as a terminal shows it."""


class _Line(NamedTuple):
    """The line of a record about a delivery or a run."""

    source: object
    status: object
    rest: str

    def text(self, paint: Paint) -> str:
        status, source, rest = map(_in_line, (self.status, self.source or "(unknown)", self.rest))
        return f"{source:<12}  {paint(status, f'{status:<9}')}  {rest}".rstrip()


def _plain(_status: str, text: str) -> str:
    return text


def readable(line: str, paint: Paint = _plain, error: str | None = None) -> str | None:
    """Turn a line of a child's output into what is shown of it; None for nothing.

    `error` is that of the attempt that the line is about, if it is known.
    """
    if not line.strip():
        return None
    record = _record(line)
    if record is None:
        return _harmless(line)
    shape = _SHAPES.get(str(record["message"])) if _is_ours(record) else None
    made = shape({**record, "error": error}) if shape else None
    text = made.text(paint) if made else _other(record)
    return None if text is None else f"{time.strftime('%H:%M:%S')}  {text if made else _harmless(text)}"


def handlers_imported(line: str) -> bool:
    """Return whether a line says that the worker has imported its handlers, and begins."""
    if '"handlers"' not in line:
        return False
    record = _record(line)
    return record is not None and record["message"] == "handlers" and _is_ours(record)


def number_of_handlers(line: str) -> int:
    """Return how many handlers were imported, of a line that says so."""
    record = _record(line)
    return int(record.get("handlers") or 0) if record else 0


def waits_to_be_mended(line: str) -> bool:
    """Return whether a line says that a child of the worker's can't work, and waits."""
    return "it is started again when that is fixed" in line


def failed_run(line: str) -> FailedRun | None:
    """Return which attempt has failed, or asked to be called later, if a line tells of one."""
    if '"run"' not in line:
        return None
    record = _record(line)
    if record is None or record["message"] != "run" or not _is_ours(record):
        return None
    if record.get("status") not in {RunStatus.WAITING, RunStatus.DEAD}:
        return None
    return FailedRun(int(record["event"]), str(record["handler"]), int(record["attempt"]))


def _record(line: str) -> Mapping[str, Any] | None:
    """Return what our formatter has written as a line; None for anything else."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    is_record = isinstance(record, dict) and record.keys() >= _WRITTEN
    return record if is_record else None


def _is_ours(record: Mapping[str, Any]) -> bool:
    return str(record["logger"]).partition(".")[0] == "hookonce"


def _delivery(record: Mapping[str, Any]) -> _Line:
    ids = record.get("event_ids") or []
    rest = int(record.get("events") or 0) - len(ids)
    types = " ".join(dict.fromkeys(record.get("types") or ()))
    what = " ".join(ids) + (f" and {rest} more" if rest > 0 else "")
    return _answered(record, record.get("status"), "  ".join(filter(None, (types, what))))


def _rejected(record: Mapping[str, Any]) -> _Line:
    return _answered(record, "rejected", str(record.get("reason")))


def _answered(record: Mapping[str, Any], status: object, rest: str) -> _Line:
    """Add the HTTP status, and the milliseconds that the sender waited for it."""
    if "http" not in record:
        return _Line(record.get("source"), status, rest)
    return _Line(record.get("source"), status, f"{record['http']}  {rest}  {float(record['ms']):.0f} ms")


def _conflict(record: Mapping[str, Any]) -> _Line:
    said = f"event {record.get('event')} came again with another body"
    return _Line(record.get("source"), "conflict", said)


def _run(record: Mapping[str, Any]) -> _Line:
    what = f"{record.get('type')}  {record.get('handler')}"
    if record.get("error"):
        what += f"  {str(record['error']).splitlines()[0]}"
    number, attempt = record.get("event"), f"attempt {record.get('attempt')}"
    is_done = record.get("status") == RunStatus.DONE
    tail = f"event {number}, {attempt}" if is_done else f"{attempt}; why: hookonce events show {number}"
    return _Line(record.get("source"), record.get("status"), f"{what}  ({tail})")


def _batch(record: Mapping[str, Any]) -> _Line:
    count = int(record.get("events") or 0)
    what = f"{record.get('handler')}  {count} {'event' if count == 1 else 'events'} in a batch"
    return _Line(record.get("source") or "(several)", record.get("status"), what)


def _ignored(record: Mapping[str, Any]) -> _Line:
    why = record.get("reason", "no handler takes it")
    what = f"{record.get('type')}  {why} (event {record.get('event')})"
    return _Line(record.get("source"), EventStatus.IGNORED, what)


def _alert(record: Mapping[str, Any]) -> _Line:
    what = f"{record.get('kind')} {record.get('status')}: {record.get('detail')}"
    return _Line(record.get("subject") or "(inbox)", "alert", what)


def _other(record: Mapping[str, Any]) -> str | None:
    """Return a line of the user's, or of a library's, whatever its level; ours only if it is a warning."""
    level, logger = str(record["level"]), str(record["logger"])
    is_quiet = logging.getLevelNamesMapping().get(level, logging.WARNING) < logging.WARNING
    if is_quiet and logger.partition(".")[0] in _OUR_MACHINERY:
        return None
    place = "" if _is_ours(record) else f"{logger}: "
    more = (name for name in record if (name in _WHOSE if _is_ours(record) else name not in _KNOWN))
    shown = "".join(f"  {name}={_in_line(record[name])}" for name in more)
    message = str(record["message"]).replace("\n", _FURTHER)
    trace = str(record.get("exc_info") or "").replace("\n", _FURTHER)
    return f"{level.lower()}: {place}{message}{shown}" + (f"{_FURTHER}{trace}" if trace else "")


def _in_line(said: object) -> str:
    """Return what a sender may have said without line breaks: each would begin a line that is ours to write."""
    return _harmless(str(said)).replace("\n", "\N{REPLACEMENT CHARACTER}")


def _harmless(text: str) -> str:
    return "".join(
        sign if sign.isprintable() or sign in "\n\t" else "\N{REPLACEMENT CHARACTER}" for sign in text
    )


_SHAPES = {
    "delivery": _delivery,
    "rejected": _rejected,
    "conflict": _conflict,
    "run": _run,
    "batch": _batch,
    "ignored": _ignored,
    "alert": _alert,
}
