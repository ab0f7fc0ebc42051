"""Shapes of JSON: an object is its keys with their shapes, a list the shape of its elements, a value its types.

    {"id": "number", "labels": [{"name": "string"}], "closed_at": "null|string"}

A part that stands in many places is kept once, under `parts`, and named `#3` where it stands.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

CATALOGUES = Path(__file__).parents[2] / "catalogues"
_LARGE = 60
"""Characters of a part that is worth a name of its own, where it stands twice."""


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


def write(sender: str, catalogue: Catalogue) -> Path:
    """Write a sender's catalogue, parts that stand in many places once."""
    seen = Counter(text for shape in catalogue.kinds.values() for text in _parts(shape))
    named = sorted((text for text, times in seen.items() if times > 1 and len(text) > _LARGE), key=len)
    numbers = {text: f"#{number}" for number, text in enumerate(named)}

    def short(shape: Any, *, is_part: bool = False) -> Any:
        if not is_part and (number := numbers.get(_text(shape))):
            return number
        if isinstance(shape, list):
            return [short(each) for each in shape]
        return {key: short(each) for key, each in shape.items()} if isinstance(shape, dict) else shape

    kinds = {kind: short(shape) for kind, shape in sorted(catalogue.kinds.items())}
    parts = [short(json.loads(text), is_part=True) for text in named]
    lines = [f'{{"source": {json.dumps(catalogue.source)},', '"parts": [']
    lines.append(",\n".join(_text(part) for part in parts) + "],")
    lines.append(
        '"kinds": {\n' + ",\n".join(f"{_text(kind)}: {_text(shape)}" for kind, shape in kinds.items()) + "}}"
    )
    path = CATALOGUES / f"{sender}.json"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def of(value: Any) -> Any:
    """Return the shape of a JSON value."""
    if isinstance(value, dict):
        return {key: of(each) for key, each in value.items()}
    if isinstance(value, list):
        return [merged([of(each) for each in value])] if value else []
    return type_of(value)


def type_of(value: Any) -> str:
    """Name the JSON type of a value that is neither object nor list."""
    if value is None:
        return "null"
    return "boolean" if isinstance(value, bool) else "string" if isinstance(value, str) else "number"


def merged(shapes: list[Any]) -> Any:
    """Return what all elements of a list have in common, with every type that one of them has."""
    if all(isinstance(shape, dict) for shape in shapes):
        common = [key for key in shapes[0] if all(key in shape for shape in shapes)]
        return {key: merged([shape[key] for shape in shapes]) for key in common}
    if all(isinstance(shape, str) for shape in shapes):
        return "|".join(sorted({name for shape in shapes for name in shape.split("|")}))
    return shapes[0]


def lacks(shape: Any, value: Any, at: str = "$") -> Iterator[str]:
    """Yield each place at which `value` has not what the shape says: a key is missing, or is of another type.

    What the vendor shows as null may be anything, and null may stand where the vendor's may be null.
    """
    if isinstance(shape, str):
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
            else:
                yield f"{at}.{key} is missing"


def filled(shape: Any, seed: str, key: str = "") -> Any:
    """Return a value of this shape; another `seed` makes others of the same shape."""
    if isinstance(shape, dict):
        return {name: filled(inner, seed, name) for name, inner in shape.items()}
    if isinstance(shape, list):
        return [filled(each, seed, key) for each in shape]
    names = shape.split("|")
    made = {
        "string": f"{key}-{seed}",
        "number": sum(map(ord, f"{key}{seed}")),
        "boolean": False,
        "null": None,
    }
    return next(made[name] for name in ("string", "number", "boolean", "null") if name in names)


def _parts(shape: Any) -> Iterator[str]:
    if isinstance(shape, dict | list):
        yield _text(shape)
        for each in shape.values() if isinstance(shape, dict) else shape:
            yield from _parts(each)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
