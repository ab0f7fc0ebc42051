"""Columns of values as PostgreSQL reads arrays (its binary format), to be given to `unnest`.

psycopg asks each value how it is spelled, which costs a third of what the statement does. Here a column has one type,
and a value that all rows share, as most of them have, is spelled once.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from struct import Struct
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

from hookonce.receiver.ledger.database.adapters import ADAPTERS

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_HEAD = Struct(
    "!iiIii"
).pack  # dimensions, whether there are nulls, type of the values, how many, the first one's index
_KEPT_SIZE = 64
"""Characters or bytes of a value whose arrays are kept."""
_LENGTH = Struct("!i").pack
_NULL = _LENGTH(-1)
_BIGINT = Struct("!q").pack
_SPAN = Struct("!qii").pack  # microseconds, days, months

_SPELLINGS: dict[str, tuple[int, Callable[[Any], bytes]]] = {
    "bigint": (20, _BIGINT),
    "smallint": (21, Struct("!h").pack),
    "bool": (16, lambda value: b"\1" if value else b"\0"),
    "bytea": (17, bytes),
    "text": (25, str.encode),
    "interval": (1186, lambda value: _SPAN(value // _MICROSECOND, 0, 0)),
    "timestamptz": (1184, lambda value: _BIGINT((value - _EPOCH) // _MICROSECOND)),
}
"""PostgreSQL's number of each type, which it never changes, and the spelling of a value."""


class PackedArray(bytes):
    """An array as PostgreSQL reads it; the statement says of what type (`%b::text[]`)."""

    __slots__ = ()


class _PackedArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: PackedArray) -> PackedArray:
        return obj


for each in (ADAPTERS, psycopg.adapters):  # statements that take arrays are sent by cursors of others', too
    each.register_dumper(PackedArray, _PackedArrayDumper)


def array(type_name: str, values: Sequence[Any]) -> PackedArray:
    """Return an array of values of one type, None for null."""
    number, spelling = _SPELLINGS[type_name]
    count = len(values)
    if not count:
        return PackedArray(_HEAD(0, 0, number, 0, 0)[:12])
    first = values[0]
    if values.count(first) == count:
        is_short = not isinstance(first, str | bytes) or len(first) <= _KEPT_SIZE
        return (_repeated if is_short else _repeated.__wrapped__)(type_name, first, count)
    if None in values:
        items = [_item(value, spelling) for value in values]
        return PackedArray(_HEAD(1, 1, number, count, 1) + b"".join(items))
    parts = [_HEAD(1, 0, number, count, 1)]
    for spelled in map(spelling, values):
        parts += (_LENGTH(len(spelled)), spelled)
    return PackedArray(b"".join(parts))


@lru_cache(maxsize=1024)
def _repeated(type_name: str, value: Any, count: int) -> PackedArray:  # noqa: ANN401
    """Return an array of so many times one value; most columns of most batches are one that has been before."""
    number, spelling = _SPELLINGS[type_name]
    return PackedArray(_HEAD(1, value is None, number, count, 1) + _item(value, spelling) * count)


def _item(value: Any, spelling: Callable[[Any], bytes]) -> bytes:  # noqa: ANN401
    if value is None:
        return _NULL
    spelled = spelling(value)
    return _LENGTH(len(spelled)) + spelled
