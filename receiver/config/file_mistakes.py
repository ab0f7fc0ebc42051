"""The mistakes of a file's tables: each is one line that names the setting's neighbours, and none hides another."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from hookonce.receiver.config.secret_references import Lookup
from hookonce.receiver.config.suggestions import did_you_mean
from hookonce.receiver.source import NOT_WRITTEN, OPTIONS

_File = TypeVar("_File")
Place = Callable[[str, str], str]
"""Names a setting, given its table and key; a table where there is no key."""

_DECISIVE = frozenset({"provider", "secrets"})
"""Settings without which most of what could be said of their table would be false."""

_EXPECTED = {
    "int_parsing": "expected a whole number",
    "int_type": "expected a whole number",
    "dict_type": "expected a table, as [sources.stripe] is one",
    "dataclass_type": "expected a table, as [sources.stripe] is one",
    "tuple_type": 'expected a list: ["…"]',
    "too_short": "expected one entry at least",
    "missing": "is missing, and has no default",
}
"""Texts instead of pydantic's, by its type of error."""
_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})


def validated(
    model: type[_File], said: dict[str, Any], lookup: Lookup, mistakes: list[str], place_of: Place
) -> _File:
    """Return a file's tables, and add a line to `mistakes` for whatever is wrong. Values stay out.

    `place_of` names a setting by its table and key. What is wrong is left out of what is returned, so that the rest
    can still be looked at.
    """
    try:
        read: _File = _reader(model).validate_python(said, context=lookup)  # type: ignore[arg-type]  # it has a hash
    except ValidationError as error:
        findings = error.errors(include_input=False, include_url=False)
    else:
        return read
    mistakes.extend(line for line in _lines(model, findings, place_of) if line not in mistakes)
    rest = _without(said, findings)
    return validated(model, rest, lookup, mistakes, place_of) if rest != said else model()


@cache
def _reader(model: type) -> TypeAdapter[Any]:
    return TypeAdapter(model)


@cache
def settings_of(table: type) -> dict[str, FieldInfo]:
    """Return the settings of a table's model by their names in the file."""
    hints = get_type_hints(table, include_extras=True)
    found = {each.name: FieldInfo.from_annotated_attribute(hints[each.name], each) for each in fields(table)}
    return {
        info.alias or name: info for name, info in found.items() if info.alias not in {NOT_WRITTEN, OPTIONS}
    }


def model_in(annotation: Any) -> type | None:  # noqa: ANN401  whatever a field is declared as
    """Return the table's model that a setting is, alone or by names, or None for a plain value."""
    if isinstance(annotation, type) and hasattr(annotation, "__pydantic_config__"):
        return annotation
    return next(filter(None, map(model_in, get_args(annotation))), None)


def _lines(model: type, findings: Sequence[ErrorDetails], place_of: Place) -> Iterator[str]:
    for finding in findings:
        *parents, last = finding["loc"]
        key, entry = (parents.pop(), f" entry {last + 1}:") if isinstance(last, int) else (last, "")
        table, kind, text = ".".join(map(str, parents)) or "top level", finding["type"], finding["msg"]
        if kind in _UNKNOWN:
            names = settings_of(_model_at(model, parents))
            yield f"{place_of(table, '')} has no setting '{key}'{did_you_mean(str(key), names, 'it has')}"
        elif kind == "value_error":
            yield f"{place_of(table, str(key))}:{entry} {text.removeprefix('Value error, ')}"
        else:
            text = _EXPECTED.get(kind, text.lower().replace("input should be", "expected"))
            yield f"{place_of(table, str(key))}:{entry} {text}"


def _model_at(model: type, path: Sequence[int | str]) -> type:
    """Return the model of the table at a path; names of one's own choice, as in `[sources.NAME]`, count as parts."""
    for part in path:
        if field := settings_of(model).get(str(part)):
            model = model_in(field.annotation) or model
    return model


def _without(said: dict[str, Any], findings: Sequence[ErrorDetails]) -> dict[str, Any]:
    """Return what a file says without what is wrong in it.

    A text where a list is expected becomes a list of one. A table goes with a decisive setting, and with one that is
    wrong because it is missing.
    """
    rest = deepcopy(said)
    for finding in findings:
        path = [str(part) for part in finding["loc"]]
        table, key = _place(rest, path)
        if finding["type"] == "tuple_type" and isinstance(table.get(key), str):
            table[key] = [table[key]]
        elif path[-1] in _DECISIVE or key not in table:
            above, name = _place(rest, path[:-1])
            above.pop(name, None)
        elif table[key] and isinstance(table[key], list):
            table[key] = []
        else:
            table.pop(key, None)
    return rest


def _place(tables: dict[str, Any], path: Sequence[str]) -> tuple[dict[str, Any], str]:
    """Return the innermost table on a path, and the key in it that the path goes on with."""
    here = tables
    for part in path[:-1]:
        inner = here.get(part)
        if not isinstance(inner, dict):
            return here, part
        here = inner
    return here, path[-1]
