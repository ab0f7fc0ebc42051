"""Shapes of JSON: an object is its keys with their shapes, a list the shape of its elements, a value its types.

    {"id": "number", "labels": [{"name": "string"}], "closed_at": "null|string", "type": "=order.paid", "note?": "x"}

A text that starts with `=` stands as it is, such as the kind's own name; a key that ends with `?` may be missing. A
part that stands in many places is kept once, under `parts`, and named `#3` where it stands.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

CATALOGUES = Path(__file__).parents[2] / "catalogues"


@dataclass(frozen=True)
class Catalogue:
    """A sender's kinds, each with the shape of one example; `source` names package, version and licence."""

    source: dict[str, str]
    kinds: dict[str, Any]


@cache
def read(sender: str) -> Catalogue:
    """Read a sender's catalogue, its parts put back where they stand."""
    said = json.loads((CATALOGUES / f"{sender}.json").read_text(encoding="utf-8"))
    parts = said["parts"]

    def whole(shape: Any) -> Any:
        if isinstance(shape, str) and shape.startswith("#"):
            return whole(parts[int(shape[1:])])
        if isinstance(shape, list):
            return [whole(each) for each in shape]
        return {key: whole(each) for key, each in shape.items()} if isinstance(shape, dict) else shape

    return Catalogue(said["source"], {kind: whole(shape) for kind, shape in said["kinds"].items()})


def type_of(value: Any) -> str:
    """Name the JSON type of a value that is neither object nor list."""
    if value is None:
        return "null"
    return "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"


def lacks(shape: Any, value: Any, at: str = "$") -> Iterator[str]:  # noqa: C901  one branch for each form of a shape
    """Yield each place at which `value` has not what the shape says: a key is missing, or is of another type.

    What the vendor shows as null may be anything, and null may stand where the vendor's may be null.
    """
    if isinstance(shape, str):
        shape = "string" if shape.startswith("=") or shape == "unix" else shape
        if "null" not in shape.split("|") and (
            isinstance(value, dict | list) or type_of(value) not in shape.split("|")
        ):
            yield f"{at} is no {shape}"
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{at} is no list"
        elif shape:
            for number, each in enumerate(value):
                yield from lacks(shape[0], each, f"{at}[{number}]")
    elif not isinstance(value, dict):
        yield f"{at} is no object"
    else:
        for key, inner in shape.items():
            if key in value:
                yield from lacks(inner, value[key], f"{at}.{key}")
            elif not key.endswith("?"):
                yield f"{at}.{key} is missing"


_TIME = re.compile(
    r"(?:^|[_a-z])(?:[Aa]t|[Dd]ate|[Tt]ime|[Tt]imestamp|[Cc]reated|[Uu]pdated|[Pp]ublished|[Mm]odified|[Tt]s)"
    r"(?:Utc|UTC|_ms|_on|_iso8601)?$|^(?:last|first)(?:Seen|Updated)$"
)
_MILLISECONDS = re.compile(r"(?:_ms|_ts|At|[a-z]Timestamp|^timestamp)$")
_KNOWN = {"currency": "EUR"}
"""Texts of which senders check the form."""


def is_time(key: str) -> bool:
    """Whether a key is called as one that holds a time."""
    return _TIME.search(key) is not None


def filled(shape: Any, seed: str, now: datetime, key: str = "") -> Any:
    """Return a value of this shape, its times at `now`; another `seed` makes others of the same shape."""
    if isinstance(shape, dict):
        return {
            name.removesuffix("?"): filled(inner, seed, now, name.removesuffix("?"))
            for name, inner in shape.items()
        }
    if isinstance(shape, list):
        return [filled(each, seed, now, key) for each in shape]
    if shape.startswith("="):
        return shape[1:]
    if shape == "unix":
        return str(int(now.timestamp()))
    names = shape.split("|")
    made = {
        "string": _KNOWN.get(key, f"{key}-{seed}"),
        "number": sum(map(ord, f"{key}{seed}")),
        "boolean": False,
    }
    if is_time(key):
        seconds = int(now.timestamp())
        made |= {"string": now.strftime("%Y-%m-%dT%H:%M:%S.000Z")}
        made |= {"number": seconds * 1000 if _MILLISECONDS.search(key) else seconds}
    return next((made[name] for name in made if name in names), None)


def replaced(body: Any, path: str, value: str) -> None:
    """Put another value of the same type at a place of a body, `$.events[0].id`, if the body has this place."""
    *steps, last = [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]$]+", path)]
    for step in steps:
        body = body[step] if step in (body if isinstance(body, dict) else range(len(body))) else {}
    if isinstance(body, dict) and last in body:
        number = int(value) if value.isdigit() else int.from_bytes(sha256(value.encode()).digest()[:4])
        body[last] = {bool: True, int: number, str: value}.get(type(body[last]), body[last])
