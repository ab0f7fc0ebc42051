"""Shapes of rows: those that are stored, whose fields are columns, and those that are shown as they are.

A dataclass whose fields say in which table each is kept names a column once.

A field `url: InBodies[str]` is the column `url` of `bodies`. Where a value is not the bare column, as a cast on its
way in or an expression on its way out, the field says so: `Annotated[str, Column("bodies", "headers::json")]`.
A field without any of these is not a column.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import psycopg
from psycopg.rows import class_row
from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")
MAX_ID: Final = (1 << 63) - 1
OURS: Final = "ours"
Ours = Annotated[str, OURS]
"""A text of an answer that the inbox makes itself, or its owner has configured; any other may be a sender's words."""
Identifier = Annotated[int, Field(ge=1, le=MAX_ID)]
ISSUE_PATTERN: Final = "^[0-9a-f]{12}$"
IssueId = Annotated[Ours, Field(pattern=ISSUE_PATTERN)]


class ResponseModel(BaseModel):
    """A row that is an answer. What a later version sends besides is passed over where an answer is read."""

    model_config = ConfigDict(
        defer_build=True, extra="ignore", json_schema_extra={"additionalProperties": False}
    )


def as_text(body: bytes | None) -> dict[str, Any]:
    """Return a body as `body`, or, where it is not UTF-8, in base64 as `body_b64`; the other of the two is None."""
    try:
        return {"body": None if body is None else body.decode(), "body_b64": None}
    except UnicodeDecodeError:
        return {"body": None, "body_b64": b64encode(body or b"").decode()}


class Column(NamedTuple):
    """The table that a field is a column of, and the SQL of its value where that is not its name."""

    table: str
    value: str = ""


InEvents = Annotated[T, Column("events")]
InBodies = Annotated[T, Column("bodies")]

_TYPES = {str: "text", bytes: "bytea", bool: "bool", datetime: "timestamptz", timedelta: "interval"}


def all_as(
    shape: type[T],
    connection: psycopg.Connection,
    query: str,
    values: Sequence[object] | Mapping[str, object] = (),
    *,
    prepare: bool | None = None,
) -> list[T]:
    """Return the rows of a query of ours, each as an object whose fields are its columns."""
    with connection.cursor(row_factory=class_row(shape)) as cursor:
        return cursor.execute(query.encode(), values or None, prepare=prepare).fetchall()


def values(shape: type, table: str) -> dict[str, str]:
    """Return the columns of a shape that a table keeps, by name, each with the SQL of its value."""
    return {
        name: column.value or name
        for name, (_, column) in _fields(shape).items()
        if column and column.table == table
    }


def types(shape: type) -> dict[str, str]:
    """Return PostgreSQL's type for each field of a shape, by name and in order, whether or not it is a column.

    A field of several values (a tuple) is left out: it does not fit beside the others.
    """
    kinds = {name: kind for name, (kind, _) in _fields(shape).items()}
    return {name: _TYPES[kind] for name, kind in kinds.items() if get_origin(kind) is not tuple}


def _fields(shape: type) -> dict[str, tuple[Any, Column | None]]:
    return {name: _field(hint) for name, hint in get_type_hints(shape, include_extras=True).items()}


def _field(hint: Any) -> tuple[Any, Column | None]:  # noqa: ANN401  a type
    column = None
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        column = next((note for note in notes if isinstance(note, Column)), None)
    if get_origin(hint) is UnionType:
        [hint] = (kind for kind in get_args(hint) if kind is not NoneType)
    return hint, column
