"""The tables and views that users may SELECT from, as SQLAlchemy tables: `hookonce.ledger` offers them.

Their columns are a promise, and all that the role of a reader is granted: states and figures, but no token of a claim,
no body, header, URL, result or error text. The rest of the schema may change with a release.

The tables lie in the schema that is configured when this module is imported; `schema_translate_map` leads a connection
to another ledger. Their MetaData is their own, so Alembic's autogenerate compares none of them.
"""

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from sqlalchemy import BigInteger, Boolean, Column, DateTime, Integer, MetaData, Table, Text
from sqlalchemy.sql.base import ReadOnlyColumnCollection
from sqlalchemy.types import TypeEngine

from hookonce.receiver.config.servers import ledger_schema

_TIME = DateTime(timezone=True)
_T = TypeVar("_T")


def _required(kind: TypeEngine[_T]) -> Column[_T]:
    return Column(kind, nullable=False)


def _optional(kind: TypeEngine[_T]) -> "Column[_T | None]":
    return cast("Column[_T | None]", Column(kind, nullable=True))


class _Columns(ReadOnlyColumnCollection[str, Column[Any]]):
    """The columns of a table, for type checkers; SQLAlchemy makes its own collection of them."""


class _Events(_Columns):
    id = _required(BigInteger())
    source = _required(Text())
    provider = _required(Text())
    event_id = _required(Text())
    type = _required(Text())
    account = _optional(Text())
    received_at = _required(_TIME)
    occurred_at = _optional(_TIME)
    is_test = _required(Boolean())
    origin = _optional(Text())


class _EventStates(_Events):
    status = _required(Text())
    due_at = _optional(_TIME)
    waits = _optional(Text())
    deliveries = _required(Integer())


class _Queue(_Columns):
    event = _required(BigInteger())
    source = _required(Text())
    type = _required(Text())
    handler = _optional(Text())
    cycle = _required(Integer())
    attempts = _required(Integer())
    received_at = _required(_TIME)
    due_at = _required(_TIME)
    waits = _optional(Text())


class _Runs(_Columns):
    event = _required(BigInteger())
    handler = _required(Text())
    cycle = _required(Integer())
    status = _required(Text())
    is_last = _required(Boolean())
    attempts = _required(Integer())
    started_at = _optional(_TIME)
    finished_at = _required(_TIME)
    issue = _optional(Text())


class _RunStates(_Columns):
    event = _required(BigInteger())
    handler = _required(Text())
    cycle = _required(Integer())
    status = _required(Text())
    attempts = _required(Integer())
    due_at = _optional(_TIME)
    waits = _optional(Text())
    started_at = _optional(_TIME)
    finished_at = _optional(_TIME)


class _Failures(_Columns):
    id = _required(BigInteger())
    event = _required(BigInteger())
    handler = _required(Text())
    cycle = _required(Integer())
    attempt = _required(Integer())
    started_at = _optional(_TIME)
    failed_at = _required(_TIME)
    issue = _optional(Text())
    release = _optional(Text())


_C_co = TypeVar("_C_co", bound=_Columns, covariant=True)

if TYPE_CHECKING:

    class _Promised(Table, Generic[_C_co]):
        @property
        def c(self) -> _C_co: ...
        @property
        def columns(self) -> _C_co: ...


_METADATA = MetaData(schema=ledger_schema())


def _table(name: str, columns: type[_C_co]) -> "_Promised[_C_co]":
    made = [
        Column(column, kind.type, nullable=kind.nullable)
        for each in reversed(columns.__mro__)
        for column, kind in vars(each).items()
        if isinstance(kind, Column)
    ]
    return cast("_Promised[_C_co]", Table(name, _METADATA, *made))


events = _table("events", _Events)
event_states = _table("event_states", _EventStates)
queue = _table("queue", _Queue)
runs = _table("runs", _Runs)
run_states = _table("run_states", _RunStates)
failures = _table("failures", _Failures)

COLUMNS = {table.name: tuple(table.c.keys()) for table in _METADATA.tables.values()}
"""The names of the promised columns, by table."""
