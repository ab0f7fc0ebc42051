"""The mistakes of a file's tables: each is one line that names the setting's neighbours, and none hides another."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hookonce.receiver.config.suggestions import did_you_mean

_Table = TypeVar("_Table", bound=BaseModel)

_DECISIVE = frozenset({"provider", "secrets"})
"""Settings without which most of what could be said of their table would be false."""

_EXPECTED = {
    "dict_type": "expected a table, as [sources.stripe] is one",
    "model_type": "expected a table, as [sources.stripe] is one",
    "list_type": 'expected a list: ["…"]',
    "missing": "is missing, and has no default",
}
"""Texts instead of pydantic's, by its type of error."""


def validated(model: type[_Table], said: dict[str, Any], mistakes: list[str], where: str) -> _Table:
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


def _lines(model: type[BaseModel], findings: Sequence[ErrorDetails]) -> Iterator[str]:
    for finding in findings:
        *parents, key = [str(part) for part in finding["loc"]]
        table = ".".join(parents) or "top level"
        if finding["type"] == "extra_forbidden":
            names = _settings_of(_model_at(model, parents))
            yield f"[{table}] has no setting '{key}'{did_you_mean(key, names, 'it has')}"
        else:
            message = (
                finding["msg"].lower().removeprefix("value error, ").replace("input should be", "expected")
            )
            yield f"[{table}] {key}: {_EXPECTED.get(finding['type'], message)}"


def _model_at(model: type[BaseModel], path: Sequence[str]) -> type[BaseModel]:
    """Return the model of the table at a path; names of one's own choice, as in `[sources.NAME]`, count as parts."""
    for part in path:
        for name, field in model.model_fields.items():
            if part in {name, field.alias}:
                model = next(_models_in(field.annotation), model)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401  whatever a field is declared as
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _settings_of(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _without(said: dict[str, Any], findings: Sequence[ErrorDetails]) -> dict[str, Any]:
    """Return what a file says without what is wrong in it.

    A text where a list is expected becomes a list of one; a decisive setting takes its table with it.
    """
    rest = deepcopy(said)
    for finding in findings:
        path = [str(part) for part in finding["loc"]]
        table, key = _place(rest, path)
        if finding["type"] == "list_type" and isinstance(table.get(key), str):
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
