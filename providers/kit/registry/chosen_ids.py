"""Ids that an operator chooses for a sender, instead of its own: `id = ["$.order.id", "$.status"]` of a source.

An event whose body has all the places is told from others by their values, in this order, and by nothing else. What
lacks one of them keeps its sender's id. With a scope, an id counts within its account: two accounts may have the same.

No two different tuples of values look the same, whatever stands in them, since they are written as JSON:
`["7","paid"]`, and 7 is not "7". An account comes first, behind an `@`: `@["acct_1","evt_1"]`. A sender's own
id that begins as one of these would is marked, with `[]`, which no tuple is.

An operator may choose while a sender tries again. So an event is also looked for under each id that it would have had
by fewer of these choices (`Event.retry_ids`); under an id by other places it is not.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hookonce.providers import Delivery, Event
from hookonce.providers.kit.events.fields import EventView, Extractor, field, header, query, text_or_none
from hookonce.providers.kit.provider import Provider

_OTHER_PLACES: Final[dict[str, Callable[[str], Extractor]]] = {"header": header, "query": query}
_MARKED: Final = ("[", "@")
_OWN: Final = "[]"


@dataclass(frozen=True, slots=True)
class ChosenIds:
    """The places of ids and accounts in a source's events; without `places` ids are the sender's."""

    places: tuple[str, ...] = ()
    account: str = ""
    is_scoped: bool = False

    @property
    def is_any(self) -> bool:
        """Whether anything is chosen."""
        return bool(self.places or self.account or self.is_scoped)

    @property
    def is_of_body(self) -> bool:
        """Whether ids are made of the body alone, and so signed with it."""
        accounts = (self.account,) if self.is_scoped and self.account else ()
        return all(place.startswith("$") for place in (*self.places, *accounts))


def place(text: str) -> Extractor:
    """Read `$.path`, `header:Name` or `query:name`. Raises: ValueError for anything else."""
    kind, _, name = text.partition(":")
    if kind in _OTHER_PLACES and name:
        return _OTHER_PLACES[kind](name)
    if text.startswith("$") and text != "$":
        return field(text)
    raise ValueError(f"{text!r} is not a place; expected '$.path', 'header:Name' or 'query:name'")


def with_chosen_ids(provider: Provider, chosen: ChosenIds) -> Provider:
    """Return a provider whose events have the ids and accounts that are chosen. Raises: ValueError naming a place."""
    if not chosen.is_any:
        return provider
    picks = [place(each) for each in chosen.places]
    account = place(chosen.account) if chosen.account else None
    usual = provider.events

    def events(delivery: Delivery) -> list[Event]:
        return [_chosen(event, delivery, picks, account, chosen) for event in usual(delivery)]

    is_signed = provider.id_is_signed
    if chosen.places:
        is_signed = not provider.body_is_unsigned
    return replace(provider, events=events, id_is_signed=is_signed and chosen.is_of_body)


def is_own(event: Event, chosen: ChosenIds) -> bool:
    """Whether an event has kept its sender's id, since it lacks one of the places."""
    inner = json.loads(event.id[1:])[1] if chosen.is_scoped and event.id[:1] == "@" else event.id
    return bool(chosen.places) and (inner[:1] != "[" or inner.startswith(_OWN))


def _chosen(
    event: Event, delivery: Delivery, picks: Sequence[Extractor], account: Extractor | None, chosen: ChosenIds
) -> Event:
    if event.unreadable:
        return event
    view = EventView(delivery, event.data, event.data)
    if account is not None:
        event = replace(event, account=text_or_none(account, view))
    values = [_value(pick.get(view)) for pick in picks]
    is_whole = bool(picks) and None not in values
    own = [event.id, *event.retry_ids]
    unscoped = [*([_tuple(values)] if is_whole else []), *map(_marked, own)]
    scoped = ["@" + _tuple([event.account, each]) for each in unscoped] if chosen.is_scoped else []
    made, *retry_ids = dict.fromkeys((*scoped, *unscoped, *own))
    if is_whole:  # nothing but these values tells it from others: not the time of its receipt either
        event = replace(event, is_undated=False)
    return replace(event, id=made, retry_ids=tuple(retry_ids))


def _value(value: object) -> str | int | bool | None:
    """Return what may be a part of an id: a text, a whole number, true or false.

    Others have many spellings, or lose digits when they are read: two of them could look alike.
    """
    return value if isinstance(value, str | int) and value != "" else None


def _marked(own: str) -> str:
    return _OWN + own if own.startswith(_MARKED) else own


def _tuple(values: Sequence[Any]) -> str:
    return json.dumps(values, separators=(",", ":"), ensure_ascii=False)
