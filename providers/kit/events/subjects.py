"""The object that an event is about, and which state of that object the event tells.

    Sender(subject=about(entity=("$.data.object.object", "$.data.object.id"), version="$.created", unit="s"), …)
    Sender(subject=about_each({"issues": "$.issue", "pull_request": "$.pull_request"}), …)

A version is a whole number, or a time, which is kept as microseconds since 1970. All types of a sender have one unit:
versions of two units can't be compared. An event whose entity or version can't be read has no subject.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple

from hookonce.providers.kit.events.fields import EventView, Extractor, Place, extractor, field, text_or_none
from hookonce.providers.kit.reading import json_paths

Unit = Literal["", "s", "ms"]
"""The unit of versions that are numbers: seconds or milliseconds since 1970, or none for a counter."""
LONGEST_ENTITY: Final = 1000
"""Bytes of an entity."""
_GREATEST: Final = 2**63 - 1
_MICROSECONDS: Final[dict[str, int]] = {"": 1, "s": 1_000_000, "ms": 1_000}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_AHEAD: Final = timedelta(days=1)
_DIGITS: Final = re.compile(r"[0-9]{1,19}")
_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,12})?)(?: ?(UTC|[Zz]|[+-]\d\d:?\d\d))", re.ASCII
)


class Subject(NamedTuple):
    """An entity, and a version of it: a whole number, or microseconds since 1970."""

    entity: str
    version: int


@dataclass(frozen=True, slots=True)
class Fields:
    """The places of an entity's parts and of its version."""

    entity: tuple[Extractor, ...]
    version: Extractor

    def subject(self, view: EventView, unit: Unit, received_at: datetime) -> Subject | None:
        """Return the subject of an event, None where entity or version can't be read."""
        entity = _entity([text_or_none(part, view) for part in self.entity])
        version = version_of(self.version.get(view), unit, received_at)
        return None if entity is None or version is None else Subject(entity, version)


@dataclass(frozen=True, slots=True)
class About:
    """The places of the subject, by patterns of types; the first that fits an event's type counts."""

    fields: Mapping[str, Fields]
    unit: Unit = ""

    def of(self, view: EventView, type: str, received_at: datetime) -> Subject | None:  # noqa: A002  the field's word
        """Return the subject of an event of this type; None where it has none, or none that can be read."""
        for pattern, each in self.fields.items():
            if pattern == type or (pattern.endswith("*") and type.startswith(pattern[:-1])):
                return each.subject(view, self.unit, received_at)
        return None


def about(*, entity: tuple[Place, ...], version: Place, unit: Unit = "") -> About:
    """Have one place of the subject for all types. Raises: ValueError for what is not a place."""
    if isinstance(entity, str) or not entity:
        raise ValueError(f"{entity!r} is not a tuple of places; expected one like ('$.order.id',)")
    return About({"*": Fields(tuple(map(extractor, entity)), extractor(version))}, unit)


def about_each(
    objects: Mapping[str, str],
    *,
    id: str = "$.id",  # noqa: A002  the sender's word
    version: Place = "$.updated_at",
    within: tuple[Place, ...] = (),
    unit: Unit = "",
) -> About:
    """Have an object for each pattern of types: `{"issues": "$.issue", "order.*": "$.order"}`.

    The entity is the object's key (`issue`) and its `id`; `within` comes before them, where ids are unique in
    something only. `id` and `version` are paths in the object; a `version` that stands elsewhere is an extractor
    (`field("$.timestamp")`). Raises: ValueError for what is not a place.
    """
    outer = tuple(map(extractor, within))
    return About(
        {
            pattern: Fields(
                (*outer, Extractor(_always(_key(path)), path), field(path + id[1:])),
                field(path + version[1:]) if isinstance(version, str) else version,
            )
            for pattern, path in objects.items()
        },
        unit,
    )


def subject_of(
    own: About | None,
    declared: About | None,
    view: EventView,
    type: str,  # noqa: A002  the field's word
    received_at: datetime,
) -> Subject | None:
    """Return an event's subject as a handler's `own` places have it, or else as its sender has `declared` it.

    Numbers of one sender have one unit, whoever says where they stand.
    """
    about = declared if own is None else own if declared is None else replace(own, unit=declared.unit)
    return None if about is None else about.of(view, type, received_at)


def version_of(value: object, unit: Unit, received_at: datetime) -> int | None:
    """Return a version as a whole number; None for what is none, or is a time a day after it was received."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        number, is_time = value * _MICROSECONDS[unit], bool(unit)
    elif isinstance(value, str) and (moment := _moment(value)) is not None:
        number, is_time = _microseconds(moment), True
    else:
        return None
    latest = _microseconds(received_at + _AHEAD) if is_time else _GREATEST
    return number if 0 <= number <= latest else None


def _moment(text: str) -> datetime | None:
    form = _TIME.fullmatch(text)
    if form is None:
        return None
    zone = form[2].upper()
    try:
        return datetime.fromisoformat(form[1].upper() + ("Z" if zone == "UTC" else zone))
    except ValueError:
        return None


def _microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _entity(parts: list[str | None]) -> str | None:
    """Join the parts; a colon of one is escaped, so that no two entities have one text."""
    if None in parts:
        return None
    *outer, last = (str(part) for part in parts)
    joined = ":".join([part.replace("%", "%25").replace(":", "%3A") for part in outer] + [last])
    try:
        is_short = len(joined.encode()) <= LONGEST_ENTITY
    except UnicodeEncodeError:
        return None
    return joined if is_short and "\0" not in joined else None


def _key(path: str) -> str:
    return next(step for step in reversed(json_paths.parse(path)) if isinstance(step, str))


def _always(text: str) -> Any:  # noqa: ANN401
    return lambda _: text
