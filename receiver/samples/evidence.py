"""Evidence that a sender's module is right: `evidence.json`, written by `make docs` from the test deliveries."""

import json
from functools import cache
from importlib.resources import files
from typing import Final

LABELS: Final = {
    "captured": "tested with a delivery that its sender made",
    "vendor docs": "tested with a delivery that its sender published",
    "vendor SDK": "tested against its sender's own library",
    "third party": "tested against others' code, none of it its sender's",
    "self-signed": "tested only with what we signed ourselves, after its sender's page: let it send a test first",
}
"""From the best to the least."""


@cache
def evidence() -> dict[str, str]:
    """Return the label of each sender that comes with hookonce."""
    text = files(__package__).joinpath("evidence.json").read_text(encoding="utf-8")
    labels: dict[str, str] = json.loads(text)
    return labels
