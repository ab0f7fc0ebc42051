"""From a delivery to its events: `one_event(...)` and `many_events(...)` declare where everything is.

    events = one_event(id="header x-github-delivery", type="header x-github-event")
    events = many_events(items="$.events", id="$.id", type="$.type", account=whole("$.tenant"))

What they make is called like a function, and has `sample` besides.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from hookonce.providers import Delivery, Event, Reason, Rejected, unreadable
from hookonce.providers.kit.events.fields import EventView, Extractor, Place, extractor, text, text_or_none
from hookonce.providers.kit.reading import json_paths
from hookonce.providers.kit.reading.bodies import (
    form_body,
    form_field,
    json_body,
    json_in_form,
    read_leniently,
    text_of,
)
from hookonce.providers.kit.signing.timestamps import instant

_MAX_BATCH_BYTES: Final = 64 * 1024 * 1024
_STEPS: Final = 9
"""Of the time within which attempts of one event follow each other: two events are told apart a ninth later."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """Attempts of a sender without ids, which signs each anew: the signed time is a part of the id.

    What has the same id otherwise, and was signed no more than `within` before, is an earlier attempt of the same
    event; an event that follows sooner is lost, so let this be the sender's first pause and no longer.
    """

    signed_at: Extractor
    within: timedelta

    def ids(self, event_id: str, view: EventView) -> tuple[str, ...]:
        """Return the id with its time, then with each time that an earlier attempt may have been signed at."""
        moment = instant(self.signed_at.get(view))
        if moment is None:
            return (event_id,)
        step = int(moment.timestamp() * _STEPS // self.within.total_seconds())
        return tuple(f"{event_id}@{step - before}" for before in range(_STEPS + 1))


class Picks(NamedTuple):
    """The places of `one_event` as extractors."""

    id: Extractor
    type: Extractor
    account: Extractor | None
    occurred_at: Extractor | None
    undated: Extractor | None


@dataclass(kw_only=True, eq=False)
class one_event:  # noqa: N801  reads as a declaration
    """Events of a sender whose delivery is one event.

    id, type: required; a delivery without them is Rejected
    account, occurred_at: None where absent or unreadable, which never costs an event
    undated: the id of an event that has no `id`, where another event may have the same; the signed time counts too
        then (`attempts`), or the time of receipt (`Sender(id_period=…)`)
    attempts: what tells attempts from events, where only the signed time does; of all events if there is no `undated`
    read: how the body is read, JSON unless said otherwise
    """

    id: Place
    type: Place
    account: Place | None = None
    occurred_at: Place | None = None
    undated: Place | None = None
    attempts: Attempts | None = None
    read: Callable[[Delivery], Any] = json_body
    picks: Picks = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.picks = Picks(
            extractor(self.id),
            extractor(self.type),
            _extractor_or_none(self.account),
            _extractor_or_none(self.occurred_at),
            _extractor_or_none(self.undated),
        )

    def __call__(self, delivery: Delivery) -> list[Event]:
        """Return the event of a verified `delivery`. Raises: Rejected(bad_body, bad_header, missing_header)."""
        data = self.read(delivery)
        return [_event(self, EventView(delivery, data, data), None)]

    def sample(self, event_id: str, kind: str) -> bytes:
        """Return a body with this id and type where the sender has them, to be signed and sent as a test."""
        data = _sample(self, event_id, kind)
        return urlencode(data).encode() if self.read is form_body else _json(data)


@dataclass(kw_only=True, eq=False)
class many_events(one_event):  # noqa: N801
    """Events of a sender that sends batches: the list at `items`, `$` for a body that is the list.

    form: the field that holds the JSON, of a sender that sends forms

    Each event's `raw` is the element as the sender wrote it. An object where the list should be is a batch of
    one. An empty list has no events. An element that lacks its id or type becomes an event of type
    `unreadable` with the SHA-256 of its bytes as id: seen, not lost, and no reason to lose its neighbours.
    """

    items: str
    form: str = ""
    _steps: tuple[json_paths.Step, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._steps = json_paths.parse(self.items)

    def __call__(self, delivery: Delivery) -> list[Event]:
        """Return the events of a verified `delivery`. Raises: Rejected(bad_body) for an unreadable body or list."""
        document = form_field(delivery, self.form) if self.form else text_of(delivery.body)
        whole = json_in_form(self.form)(delivery) if self.form else json_body(delivery)
        return [
            _element(self, EventView(delivery, value, whole, at), raw)
            for at, (value, raw) in enumerate(self._elements(whole, document))
        ]

    def parts(self, delivery: Delivery) -> list[Delivery]:
        """Return a delivery of each event of `delivery`, as they are written. Raises: Rejected(bad_body)."""
        found = self._elements(json_body(delivery), text_of(delivery.body))
        bodies = (self.batch(raw.encode("utf-8", "surrogatepass")) for _, raw in found)
        return [replace(delivery, body=body, readings={}) for body in bodies]

    def _elements(self, whole: object, document: str) -> list[tuple[Any, str]]:
        """Return the elements, each with its own characters. Raises: Rejected(bad_body) where there is no list."""
        if None not in self._steps and isinstance(json_paths.find(whole, self._steps), list):
            return json_paths.slices(document, (*self._steps, None))  # nearly all; without a copy of the list
        found = json_paths.slices(document, self._steps)
        if not found and None not in self._steps:
            raise Rejected(Reason.BAD_BODY, f"{self.items} is missing")
        return [element for value, raw in found for element in _elements(value, raw)]

    def sample(self, event_id: str, kind: str) -> bytes:
        """Return a batch of one event with this id and type."""
        return self.batch(_json(_sample(self, event_id, kind)))

    def batch(self, element: bytes) -> bytes:
        """Return a batch of one event, the element as it is written; what the sender puts around it is left out."""
        place = self._steps if None in self._steps else (*self._steps, 0)
        around = _json(json_paths.put(None, place, 0))
        body = element.join(around.rpartition(b"0")[::2])
        return urlencode({self.form: body}).encode() if self.form else body


@dataclass(kw_only=True, eq=False)
class split_events(one_event):  # noqa: N801
    """Events of a sender whose batches are nested, or share what every event needs (an account, a channel).

    `pieces` cuts the body, as read, into deliveries of one event each, of the same shape as the whole, and
    raises Rejected for what can't be cut. A piece is the event's data; its `raw` is the piece written as
    compact JSON, so numbers may be spelled otherwise than they were sent. The whole itself, uncut, is an event
    with the raw body, and so is a batch whose pieces would repeat what they share beyond 64 MiB in all.
    """

    pieces: Callable[[Any], Iterable[Any]]

    def __call__(self, delivery: Delivery) -> list[Event]:
        """Return the events of a verified `delivery`. Raises: Rejected(bad_body) for what can't be read or cut."""
        whole = self.read(delivery)
        found, size = [], 0
        try:
            for at, piece in enumerate(self.pieces(whole)):
                raw = b"" if piece is whole else _json(piece)
                size += len(raw)
                if piece is whole or size > _MAX_BATCH_BYTES:
                    return [_event(self, EventView(delivery, whole, whole), None)]
                found.append(_element(self, EventView(delivery, piece, whole, at), raw.decode()))
        except RecursionError:
            raise Rejected(Reason.BAD_BODY, "the body is nested too deeply") from None
        return found


@dataclass(eq=False)
class one_of_two:  # noqa: N801  reads as a declaration
    """Events of a sender with two kinds of deliveries: `other` where `when` holds, else `usual`, as samples are."""

    usual: one_event
    other: one_event
    _: KW_ONLY
    when: Callable[[Delivery], bool]

    def __call__(self, delivery: Delivery) -> list[Event]:
        """Return the events of a verified `delivery`. Raises: Rejected(bad_body, bad_header, missing_header)."""
        return (self.other if self.when(delivery) else self.usual)(delivery)

    def sample(self, event_id: str, kind: str) -> bytes:
        """Return a body of the usual kind with this id and type."""
        return self.usual.sample(event_id, kind)

    @property
    def batch(self) -> Callable[[bytes], bytes] | None:
        """Return the function that makes a batch of one event, as deliveries that are batches; None if none is."""
        return next((each.batch for each in (self.usual, self.other) if isinstance(each, many_events)), None)


def unreadable_delivery(events: object, delivery: Delivery, why: Rejected) -> Event:
    """Return the event for a genuine delivery that `events` could not read."""
    sender_id = None
    if isinstance(events, one_event):
        try:
            data = events.read(read_leniently(delivery) or delivery)
        except Rejected:
            data = None
        sender_id = text_or_none(events.picks.id, EventView(delivery, data, data))
    return unreadable(delivery.body, why, sender_id=sender_id)


def _extractor_or_none(place: Place | None) -> Extractor | None:
    return None if place is None else extractor(place)


def _elements(value: object, raw: str) -> list[tuple[Any, str]]:
    return json_paths.slices(raw, (None,)) if isinstance(value, list) else [(value, raw)]


def _element(spec: one_event, view: EventView, raw: str) -> Event:
    own = raw.encode("utf-8", "surrogatepass")
    try:
        return _event(spec, view, own)
    except Rejected as error:
        return unreadable(own, error, sender_id=text_or_none(spec.picks.id, view), data=view.data, raw=own)


def _event(spec: one_event, view: EventView, raw: bytes | None) -> Event:
    picks = spec.picks
    dated = text_or_none(picks.id, view) if picks.undated else None
    own = dated or text(picks.undated or picks.id, view)
    timed = None if dated else spec.attempts
    event_id, *retry_ids = timed.ids(own, view) if timed else (own,)
    return Event(
        event_id,
        text(picks.type, view),
        view.data,
        text_or_none(picks.account, view),
        instant(picks.occurred_at.get(view)) if picks.occurred_at else None,
        raw,
        tuple(retry_ids),
        dated is None and timed is None if picks.undated else None,
    )


def _sample(spec: one_event, event_id: str, kind: str) -> Any:  # noqa: ANN401
    picks = spec.picks
    data: Any = {} if picks.id.put else {"hookonce": event_id}
    for pick, value in ((picks.id, event_id), (picks.type, kind)):
        if pick.put:
            data = pick.put(data, value)
    return data


def _json(data: object) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()
