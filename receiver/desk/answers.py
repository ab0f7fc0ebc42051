"""An answer as facts and tables, for whoever has no page or listing of its own for it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from pydantic import BaseModel

from hookonce.receiver.ledger.rows import ResponseModel


class Table(NamedTuple):
    """Rows of a kind, each with a value for every column."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


def facts(answer: ResponseModel) -> list[tuple[str, object]]:
    """Return what is one value, by its name; what is a list of things is in `tables`."""
    return [(_words(name), plain(value)) for name, value in answer if not _is_table(value)]


def tables(answer: ResponseModel) -> Iterator[Table]:
    """Yield the lists of things that an answer has; one without rows has no columns either."""
    for name, value in answer:
        if isinstance(value, dict):
            yield Table(_words(name), ("name", "value"), list(value.items()))
        elif _is_table(value):
            columns = list(type(value[0]).model_fields) if value else []
            rows = [[plain(getattr(row, column)) for column in columns] for row in value]
            yield Table(_words(name), [_words(column) for column in columns], rows)


def plain(value: object) -> object:
    """Return a value for one place of a table: what it holds as words, or how much that is."""
    if isinstance(value, BaseModel):
        value = dict(value)
    if isinstance(value, Mapping):
        given = [(name, text) for name, each in value.items() if (text := _text(each)) is not None]
        return ", ".join(f"{_words(str(name))} {text}" for name, text in given) or None
    if isinstance(value, list | tuple):
        return "; ".join(text for each in value if (text := _text(each)) is not None) or None
    return value


def _text(value: object) -> str | None:
    found = plain(value)
    if found is None:
        return None
    return found.isoformat(timespec="seconds") if isinstance(found, datetime) else str(found)


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and all(isinstance(each, ResponseModel) for each in value)
    )


def _words(name: str) -> str:
    return name.replace("_", " ")
