"""An action as a form: the fields that are filled in, and its answer as facts and tables.

`fields` says what there is to fill in, and `read` makes the action's models of what was given by the names of fields. A
field within another has both names: `filter.status`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from hookonce.receiver.desk.models import RequestModel, ResponseModel, mistakes, said_of
from hookonce.receiver.desk.refusals import Invalid
from hookonce.receiver.desk.registry import Action

M = TypeVar("M", bound=RequestModel)
Kind = Literal["text", "number", "flag", "choice", "time", "list", "json"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field: `which` it is that is meant, or how it is `asked`; what it takes, and what there is to say of it."""

    role: str
    name: str
    kind: Kind
    is_required: bool
    about: str = ""
    choices: tuple[str, ...] = ()
    default: Any = None

    def read(self, text: str) -> Any:  # noqa: ANN401  whatever the field takes
        """Return what a person typed into the field as its model takes it; what can't be read stays text."""
        if self.kind in {"number", "json"}:
            try:
                return json.loads(text)
            except ValueError:
                return text
        if self.kind == "flag":
            return bool(text)
        return text.split() if self.kind == "list" else text


def fields(action: Action[Any]) -> Iterator[Field]:
    """Yield the fields of an action, those that name what is meant first; of a listing without its cursor."""
    for role, model in action.inputs.items():
        schema = model.model_json_schema(mode="validation")
        yield from _fields(role, "", schema, schema.get("$defs", {}))


def read(action: Action[Any], arguments: Mapping[str, Any]) -> dict[str, RequestModel]:
    """Read arguments as the models of an action; None is as if it were left out. Raises: `Invalid`."""
    left = _nested(arguments)
    found = {}
    for number, (role, model) in enumerate(action.inputs.items(), 1):
        given = {name: left.pop(name) for name in model.model_fields if name in left}
        is_last = number == len(action.inputs)
        found[role] = read_model(model, given | left if is_last else given)
    if left:
        raise Invalid(f"{action.name} takes no {', '.join(map(repr, left))}")
    return found


def read_model(model: type[M], arguments: Mapping[str, Any]) -> M:
    """Read arguments as one model. Raises: `Invalid`."""
    try:
        return model.model_validate(dict(arguments))
    except ValidationError as error:
        raise Invalid(said_of(mistakes(error, model))) from None


def _nested(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Put `filter.status` into `filter`, and leave out what is None."""
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        outer, _, inner = name.partition(".")
        if value is not None:
            found.update({outer: {**found.get(outer, {}), inner: value}} if inner else {outer: value})
    return found


def _fields(role: str, before: str, schema: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[Field]:
    for name, given in schema.get("properties", {}).items():
        described = _resolved(given, known)
        if described.get("type") == "object":
            yield from _fields(role, f"{before}{name}.", described, known)
        elif name != "cursor":
            yield Field(
                role,
                before + name,
                _kind(described),
                name in schema.get("required", ()),
                given.get("description", ""),
                tuple(described.get("enum", ())),
                given.get("default"),
            )


def _resolved(schema: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a field's schema says besides that it may be null."""
    choices = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    found = choices[0] if len(choices) == 1 else schema
    return known[found["$ref"].rpartition("/")[2]] if "$ref" in found else found


def _kind(schema: Mapping[str, Any]) -> Kind:
    if "enum" in schema:
        return "choice"
    if any(each.get("format") == "date-time" for each in schema.get("anyOf", ())):
        return "time"
    if "anyOf" in schema:
        return "text"
    kinds: dict[str | None, Kind] = {
        "string": "text",
        "integer": "number",
        "number": "number",
        "boolean": "flag",
        "array": "list",
    }
    return kinds.get(schema.get("type"), "json")


class Table(NamedTuple):
    """Rows of a kind, each with a value for every column."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


def facts(answer: ResponseModel) -> list[tuple[str, object]]:
    """Return what is one value, by its name; what is a list of things is in `tables`."""
    return [(_spaced(name), plain(value)) for name, value in _members(answer) if not _is_table(value)]


def tables(answer: ResponseModel) -> Iterator[Table]:
    """Yield the lists of things that an answer has; one without rows has no columns either."""
    for name, value in _members(answer):
        if isinstance(value, dict):
            yield Table(_spaced(name), ("name", "value"), list(value.items()))
        elif _is_table(value):
            columns = [name for name, _ in _members(value[0])] if value else []
            rows = [[plain(each) for _, each in _members(row)] for row in value]
            yield Table(_spaced(name), [_spaced(column) for column in columns], rows)


def _members(answer: ResponseModel) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an answer, and what it says of them in words, by name."""
    yield from answer
    for name in type(answer).model_computed_fields:
        yield name, getattr(answer, name)


def plain(value: object) -> object:
    """Return a value for one place of a table: what it holds as words, or how much that is."""
    if isinstance(value, BaseModel):
        value = dict(value)
    if isinstance(value, Mapping):
        given = [(name, text) for name, each in value.items() if (text := _text_of(each)) is not None]
        return ", ".join(f"{_spaced(str(name))} {text}" for name, text in given) or None
    if isinstance(value, list | tuple):
        return "; ".join(text for each in value if (text := _text_of(each)) is not None) or None
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _text_of(value: object) -> str | None:
    found = plain(value)
    if found is None:
        return None
    return found.isoformat(timespec="seconds") if isinstance(found, datetime) else str(found)


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and all(isinstance(each, ResponseModel) for each in value)
    )


def _spaced(name: str) -> str:
    return name.replace("_", " ")
