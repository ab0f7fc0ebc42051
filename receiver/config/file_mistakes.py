"""The mistakes of a file's tables: each is one line that names the setting's neighbours, and none hides another."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, Final, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from hookonce.receiver.config.suggestions import did_you_mean

_File = TypeVar("_File", bound=BaseModel)
TABLE: Final = ConfigDict(extra="forbid")
"""How a table is read: a setting that it does not have is a mistake."""

_DECISIVE = frozenset({"provider", "secrets"})
"""Settings without which most of what could be said of their table would be false."""

_EXPECTED = {
    "dict_type": "expected a table, as [sources.stripe] is one",
    "dataclass_type": "expected a table, as [sources.stripe] is one",
    "model_type": "expected a table, as [sources.stripe] is one",
    "tuple_type": 'expected a list: ["…"]',
    "missing": "is missing, and has no default",
}
"""Texts instead of pydantic's, by its type of error."""
_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})


def validated(model: type[_File], said: dict[str, Any], mistakes: list[str], where: str) -> _File:
    """Return a file's tables, and add a line to `mistakes` for whatever is wrong; `where` begins each. Values stay out.

    What is wrong is left out of what is returned, so that the rest can still be looked at.
    """
    try:
        return model.model_validate(said)
    except ValidationError as error:
        findings = error.errors(include_input=False, include_url=False)
    mistakes.extend(f"{where}: {line}" for line in _lines(model, findings))
    rest = _without(said, findings)
    return validated(model, rest, mistakes, where) if rest != said else model()


def with_read(value: object, **readers: Callable[[object], object]) -> object:
    """Return an inline table with some of its keys read from their texts. Raises: ValueError that names the key."""
    read = dict(value) if isinstance(value, dict) else {}
    for key in readers.keys() & read.keys():
        try:
            read[key] = readers[key](read[key])
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    return read if isinstance(value, dict) else value


def settings_of(table: type) -> dict[str, FieldInfo]:
    """Return the settings of a table's model by their names in the file."""
    fields: dict[str, FieldInfo] = getattr(table, "__pydantic_fields__", {})
    return {field.alias or name: field for name, field in fields.items()}


def model_in(annotation: Any) -> type | None:  # noqa: ANN401  whatever a field is declared as
    """Return the table's model that a setting is, alone or by names, or None for a plain value."""
    if isinstance(annotation, type) and settings_of(annotation):
        return annotation
    return next(filter(None, map(model_in, get_args(annotation))), None)


def _lines(model: type[BaseModel], findings: Sequence[ErrorDetails]) -> Iterator[str]:
    for finding in findings:
        *parents, key = [str(part) for part in finding["loc"]]
        table, kind, text = ".".join(parents) or "top level", finding["type"], finding["msg"]
        if kind in _UNKNOWN:
            names = settings_of(_model_at(model, parents))
            yield f"[{table}] has no setting '{key}'{did_you_mean(key, names, 'it has')}"
        elif kind == "value_error":
            yield f"[{table}] {key}: {text.removeprefix('Value error, ')}"
        else:
            yield f"[{table}] {key}: {_EXPECTED.get(kind, text.lower().replace('input should be', 'expected'))}"


def _model_at(model: type, path: Sequence[str]) -> type:
    """Return the model of the table at a path; names of one's own choice, as in `[sources.NAME]`, count as parts."""
    for part in path:
        if field := settings_of(model).get(part):
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
