"""The mistakes of a file's tables: each is one line that names the setting's neighbours, and none hides another."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import fields
from functools import cache
from types import MappingProxyType
from typing import Any, Final, TypeVar, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from hookonce.receiver.config.suggestions import did_you_mean
from hookonce.receiver.source import NOT_WRITTEN, OPTIONS

_File = TypeVar("_File")
_NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})

_DECISIVE = frozenset({"provider", "secrets"})
"""Settings without which most of what could be said of their table would be false."""

_EXPECTED = {
    "int_parsing": "expected a whole number",
    "int_type": "expected a whole number",
    "dict_type": "expected a table, as [sources.stripe] is one",
    "dataclass_type": "expected a table, as [sources.stripe] is one",
    "tuple_type": 'expected a list: ["…"]',
    "missing": "is missing, and has no default",
}
"""Texts instead of pydantic's, by its type of error."""
_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})


def validated(
    model: type[_File],
    said: dict[str, Any],
    mistakes: list[str],
    where: str,
    variables: Mapping[str, str] = _NO_VARIABLES,
) -> _File:
    """Return a file's tables, and add a line to `mistakes` for whatever is wrong. Values stay out.

    `where` begins each line, but for settings that variables of the environment have set: `variables` names those.
    What is wrong is left out of what is returned, so that the rest can still be looked at.
    """
    try:
        read: _File = _reader(model).validate_python(said)  # type: ignore[arg-type]  # a class has a hash
    except ValidationError as error:
        findings = error.errors(include_input=False, include_url=False)
    else:
        return read
    mistakes.extend(_lines(model, findings, where, variables))
    rest = _without(said, findings)
    return validated(model, rest, mistakes, where, variables) if rest != said else model()


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


def _lines(
    model: type, findings: Sequence[ErrorDetails], where: str, variables: Mapping[str, str]
) -> Iterator[str]:
    for finding in findings:
        *parents, key = finding["loc"]
        if isinstance(key, int):
            key = f"{parents.pop()}: entry {key + 1}"
        table, kind, text = ".".join(map(str, parents)) or "top level", finding["type"], finding["msg"]
        place = variables.get(f"{table}.{key}") or f"{where}: [{table}] {key}"
        if kind in _UNKNOWN:
            names = settings_of(_model_at(model, parents))
            yield f"{where}: [{table}] has no setting '{key}'{did_you_mean(key, names, 'it has')}"
        elif kind == "value_error":
            yield f"{place}: {text.removeprefix('Value error, ')}"
        else:
            yield f"{place}: {_EXPECTED.get(kind, text.lower().replace('input should be', 'expected'))}"


def _model_at(model: type, path: Sequence[int | str]) -> type:
    """Return the model of the table at a path; names of one's own choice, as in `[sources.NAME]`, count as parts."""
    for part in path:
        if field := settings_of(model).get(str(part)):
            model = model_in(field.annotation) or model
    return model


def _without(said: dict[str, Any], findings: Sequence[ErrorDetails]) -> dict[str, Any]:
    """Return what a file says without what is wrong in it.

    A text where a list is expected becomes a list of one; a decisive setting takes its table with it.
    """
    rest = deepcopy(said)
    for finding in findings:
        path = [str(part) for part in finding["loc"]]
        table, key = _place(rest, path)
        if finding["type"] == "tuple_type" and isinstance(table.get(key), str):
            table[key] = [table[key]]
        elif path[-1] in _DECISIVE or finding["type"] == "missing":
            above, name = _place(rest, path[:-1])
            above.pop(name, None)
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
