"""The results, prints and logs of handlers and their steps, opened, and as they are shown."""

import json
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from hookonce.receiver.encryption import AssociatedData, CannotDecrypt, Keyring, log_context
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel
from hookonce.receiver.ledger.withheld import EMPTY, ContentRow

SKIPPED = "stale"
"""What the result of a run that was skipped says under `skipped`."""


class LeftOut(StrEnum):
    """The result of a run whose event was not forwarded, under `skipped`."""

    NO_MATCH = "no match"
    WHEN_FAILED = "when failed"
    BEEN_THERE = "came from there"


CALL = "call"
"""Stands for the logger in the line of a traced call."""
_DEEP = 100


def opened(
    keyring: Keyring, bond: AssociatedData, clear: object, sealed: bytes | None, key: str | None
) -> tuple[Any, str | None]:
    """Return a JSON value from the columns that may hold it; or None, and why it can't be opened."""
    if sealed is None:
        return clear, None
    try:
        return json.loads(keyring.open(sealed, key, bond)), None
    except CannotDecrypt as error:
        return None, str(error)


def shallow(value: Any) -> Any:  # noqa: ANN401  JSON
    """Return a value that most writers of JSON can write: its text where it is nested deeper than they go."""
    level = [value]
    for _ in range(_DEEP):
        inner = [each.values() if isinstance(each, dict) else each for each in level]
        level = [
            each
            for found in inner
            if not isinstance(found, str) and isinstance(found, Iterable)
            for each in found
        ]
    return json.dumps(value) if level else value


class LogLine(ResponseModel):
    """A line that a handler printed or logged, or a call of another service that it traced (`CALL`)."""

    at: int = Field(description="milliseconds since its attempt began")
    level: str = Field(description="level of a logger's line; empty for a printed line")
    logger: str = Field(description="the logger's name, `stdout` or `stderr`; `call` for a call")
    text: str
    took: int | None = Field(
        default=None, description="milliseconds that a call took; null of what was logged"
    )


class AttemptLog(ContentRow):
    """The lines that a handler printed and logged in one attempt; an attempt whose process was killed has none."""

    handler: Ours
    cycle: int
    attempt: int
    lines: Annotated[list[LogLine], EMPTY] = Field(default_factory=list)
    left_out: int = Field(default=0, description="lines that were over the limits of an attempt")
    unreadable: Ours | None = Field(
        default=None, description="why the lines can't be read here; there are none then"
    )
    batch: Identifier | None = Field(
        default=None,
        description="first event of the batch, which keeps the lines; null for that event, and without a batch",
    )


def lines_as_json(lines: Sequence[LogLine], left_out: int) -> bytes:
    """Write what the ledger keeps; `opened_lines` reads it."""
    kept = [list(line.model_dump(exclude_none=True).values()) for line in lines]
    return json.dumps([left_out, *kept], ensure_ascii=False, separators=(",", ":")).encode()


def batch_as_json(event: int) -> bytes:
    """Write what the ledger keeps with the other events of a batch: the first one, whose row has the lines."""
    return json.dumps({"batch": event}).encode()


def opened_lines(keyring: Keyring, event: int, row: dict[str, Any]) -> dict[str, Any]:
    """Return fields of an `AttemptLog` from a row of `run_logs`; of a batch's other events which one has the lines."""
    bond = log_context(event, row["handler"], row["cycle"], row["attempt"])
    found, unreadable = opened(keyring, bond, None, row["lines"], row["key_id"])
    if found is None or isinstance(found, dict):
        return found or {"unreadable": unreadable}
    left_out, *lines = found
    names = LogLine.model_fields
    return {"left_out": left_out, "lines": [dict(zip(names, line, strict=False)) for line in lines]}


def is_skip(result: object) -> bool:
    """Return whether this is the result of a run that was skipped, or not forwarded; it quotes nothing of its event."""
    if not isinstance(result, dict):
        return False
    if result.keys() == {"skipped"}:
        return result["skipped"] in set(LeftOut)
    return (
        result.keys() == {"skipped", "newest"}
        and result["skipped"] == SKIPPED
        and isinstance(result["newest"], int)
    )
