"""What handlers and their steps return, print and log, opened, and as it is shown."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hookonce.receiver.encryption import CannotDecrypt, Keyring, log_context, result_context

SKIPPED = "stale"
"""What the result of a run that was skipped says under `skipped`."""
CALL = "call"
"""Stands for the logger in the line of a traced call."""
_DEEP = 100


def opened(
    keyring: Keyring, run: tuple[int, str], result: object, sealed: bytes | None, key: str | None
) -> tuple[Any, str | None]:
    """Return what a run (event, handler) returned, from the columns that may hold it; or None, and why it can't be."""
    if sealed is None:
        return result, None
    try:
        return json.loads(keyring.open(sealed, key, result_context(*run))), None
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


class LogLine(NamedTuple):
    """A line: when, in milliseconds since its attempt began; how grave; which logger, stdout or stderr; what.

    A traced call of another service is one, too, from `CALL`: `at` is when it began, and `took` how many milliseconds.
    """

    at: int
    level: str
    logger: str
    text: str
    took: int | None = None


class AttemptLog(NamedTuple):
    """The lines of one attempt; `left_out` more were over the limits, `unreadable` says why there are none here.

    Those of a batch are kept once, with its first event: `batch` is that event, in the logs of the others.
    """

    handler: str
    cycle: int
    attempt: int
    lines: Sequence[LogLine]
    left_out: int = 0
    unreadable: str | None = None
    batch: int | None = None

    def as_mapping(self) -> dict[str, Any]:
        """Return it with the names of its fields, and of those of its lines."""
        return {**self._asdict(), "lines": [line._asdict() for line in self.lines]}


def lines_as_json(lines: Sequence[LogLine], left_out: int) -> bytes:
    """Write what the ledger keeps; `opened_log` reads it."""
    kept = [line if line.took is not None else line[:4] for line in lines]
    return json.dumps([left_out, *kept], ensure_ascii=False, separators=(",", ":")).encode()


def batch_as_json(event: int) -> bytes:
    """Write what the ledger keeps with the other events of a batch: the first one, whose row has the lines."""
    return json.dumps({"batch": event}).encode()


def opened_log(keyring: Keyring, event: int, row: dict[str, Any]) -> AttemptLog:
    """Return the lines of a row of `run_logs`, opened; of a batch's other events none, but which has them."""
    which = (row["handler"], row["cycle"], row["attempt"])
    try:
        text = keyring.open(row["lines"], row["key_id"], log_context(event, *which))
    except CannotDecrypt as error:
        return AttemptLog(*which, (), unreadable=str(error))
    found = json.loads(text)
    if isinstance(found, dict):
        return AttemptLog(*which, (), batch=found["batch"])
    left_out, *lines = found
    return AttemptLog(*which, [LogLine(*line) for line in lines], left_out)


def is_skip(result: object) -> bool:
    """Return whether this is the result of a run that was skipped for a newer event; it quotes nothing of its own."""
    return (
        isinstance(result, dict)
        and result.keys() == {"skipped", "newest"}
        and result["skipped"] == SKIPPED
        and isinstance(result["newest"], int)
    )
