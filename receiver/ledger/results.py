"""What handlers and their steps return, as it is shown."""

import json
from collections.abc import Iterable
from typing import Any

_DEEP = 100


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
