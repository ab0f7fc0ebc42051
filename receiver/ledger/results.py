"""What handlers and their steps return, opened, and as it is shown."""

import json
from collections.abc import Iterable
from typing import Any

from hookonce.receiver.encryption import CannotDecrypt, Keyring, result_context

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
