"""Picks: a header, a place in the body, or something made of several, in which a sender keeps what we want.

Each function makes an `Extractor`, which `one_event` and `many_events` apply to every delivery. Where one is expected a
text does as well: `$.id` is `field("$.id")`, `header x-id` is `header("x-id")`, `query id` is `query("id")`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.events.fingerprint import canonical, delivery_fingerprint, fingerprint
from hookonce.providers.kit.reading import json_paths
from hookonce.providers.kit.reading.bodies import header_name

_MAX_PARAMETERS: Final = 100


class EventView(NamedTuple):
    """The view of a pick: the delivery, the event's own data, the whole body (of a batch), the place in it."""

    delivery: Delivery
    data: Any
    whole: Any
    at: int = 0


@dataclass(frozen=True, slots=True)
class Extractor:
    """How to get one value: `get` gives None where there is none, `where` names the place in messages.

    `put` puts a value at this place of a sample body, None where the place is not in the body.
    """

    get: Callable[[EventView], object]
    where: str
    absent: Reason = Reason.BAD_BODY
    junk: Reason = Reason.BAD_BODY
    put: Callable[[Any, str], Any] | None = None


Place = Extractor | str
"""An extractor, or a text that says which: `$.id`, `header x-id`, `query id`."""


def extractor(place: Place) -> Extractor:
    """Return the extractor that a place stands for. Raises: ValueError for a text that is not a place."""
    if isinstance(place, Extractor):
        return place
    kind, _, name = place.partition(" ")
    if place.startswith("$"):
        return field(place)
    if kind in _KINDS and name:
        return _KINDS[kind](name)
    raise ValueError(f"{place!r} is not a place; expected one like '$.id', 'header x-id' or 'query id'")


def header(*names: str) -> Extractor:
    """The first of these headers that was sent. Raises: ValueError for a name that never arrives."""
    lower = tuple(map(header_name, names))

    def get(view: EventView) -> object:
        sent: Mapping[str, str] = view.delivery.headers
        return next((sent[name] for name in lower if name in sent), None)

    return Extractor(get, f"header {' or '.join(lower)}", Reason.MISSING_HEADER, Reason.BAD_HEADER)


def field(path: str) -> Extractor:
    """A place in the event's data: `$.id`; in a form, a field. Raises: ValueError for what is not a path."""
    steps = _one_place(path)

    def value(view: EventView) -> object:
        return json_paths.find(view.data, steps)

    def member(view: EventView) -> object:
        data = view.data
        for key in steps:
            if not isinstance(data, dict):
                return None
            data = data.get(key)
        return data

    are_keys = bool(steps) and all(isinstance(step, str) for step in steps)  # nearly all
    return Extractor(
        member if are_keys else value,
        path,
        put=lambda data, value: json_paths.put(data, steps, value),
    )


def whole(path: str) -> Extractor:
    """A place in the whole body of a batch, outside its elements. Raises: ValueError for what is not a path."""
    steps = _one_place(path)
    return Extractor(lambda view: json_paths.find(view.whole, steps), f"{path} of the batch")


def query(name: str) -> Extractor:
    """A parameter in the URL's query."""

    def get(view: EventView) -> object:
        try:
            return dict(parse_qsl(urlsplit(view.delivery.url).query, max_num_fields=_MAX_PARAMETERS)).get(
                name
            )
        except ValueError:
            return None

    return Extractor(get, f"query parameter {name}", Reason.BAD_HEADER, Reason.BAD_HEADER)


_KINDS: Final[dict[str, Callable[[str], Extractor]]] = {"header": header, "query": query}


def position() -> Extractor:
    """The event's place in its batch, from 0: tells apart events of one batch that are alike."""
    return Extractor(lambda view: view.at, "the place in the batch")


def fixed(text: str) -> Extractor:
    """Always `text`; last in `first`, what holds when the sender said nothing."""
    return Extractor(lambda _: text, "a fixed text")


def first(*places: Place) -> Extractor:
    """The first of `places` that has a text or a number; an empty text is nothing."""
    picks = [extractor(place) for place in places]

    def get(view: EventView) -> object:
        odd: object = None
        for pick in picks:
            value = pick.get(view)
            if isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "":
                return value
            odd = value if odd is None else odd
        return odd

    return Extractor(
        get, " or ".join(pick.where for pick in picks), picks[0].absent, picks[0].junk, picks[0].put
    )


def when_matches(place: Place, pattern: str, value: Place) -> Extractor:
    """`value`, where the whole text at `place` fits the regular expression `pattern`."""
    form, pick, then = re.compile(pattern), extractor(place), extractor(value)

    def get(view: EventView) -> object:
        text = text_or_none(pick, view)
        return then.get(view) if text is not None and form.fullmatch(text) else None

    return Extractor(get, then.where, then.absent, then.junk, then.put)


def mode(place: Place, *, live: Sequence[object], absent: str | None = None) -> Extractor:
    """Return `live` where the value at `place` is one of these, `test` for another; `absent` where there is none."""
    pick = extractor(place)

    def get(view: EventView) -> object:
        value = pick.get(view)
        return absent if value is None else "live" if value in live else "test"

    return Extractor(get, pick.where)


def join(*places: Place, by: str = ":") -> Extractor:
    """An id of several values, `created:7:1767225600`; None unless every one is a text or an integer."""
    picks = [extractor(place) for place in places]

    def get(view: EventView) -> object:
        values = []
        for pick in picks:
            value = text_or_none(pick, view)
            if value is None:
                return None
            values.append(value)
        return by.join(values)

    return Extractor(get, " + ".join(pick.where for pick in picks), put=_put_all(picks))


def scoped(within: Place, inner: Place) -> Extractor:
    """An id that is unique within something only: `<scope>:<id>`, whatever stands in either.

    A colon of the id is escaped, so that the last one is the one between them; as in a URL, `%3A`.
    """
    scope, own = extractor(within), extractor(inner)

    def get(view: EventView) -> object:
        outer, value = text_or_none(scope, view), text_or_none(own, view)
        if outer is None or value is None:
            return None
        return f"{outer}:{value.replace('%', '%25').replace(':', '%3A')}"

    return Extractor(get, f"{scope.where} + {own.where}", put=_put_all((scope, own)))


def digest(*places: Place) -> Extractor:
    """An id for senders that have none: SHA-256 (hex) over these values, in this order.

    The same for every redelivery if the values are; None if every one of them is absent.
    """
    picks = [extractor(place) for place in places]

    def get(view: EventView) -> object:
        values = [pick.get(view) for pick in picks]
        try:
            made = canonical(values)
        except RecursionError:
            raise Rejected(Reason.BAD_BODY, "the body is nested too deeply") from None
        return sha256(made).hexdigest() if any(value is not None for value in values) else None

    return Extractor(get, " + ".join(pick.where for pick in picks), put=_put_all(picks))


def body_digest(*volatile: str) -> Extractor:
    """An id for senders that have none: the body's fingerprint (hex) without the `volatile` paths."""
    return Extractor(
        lambda view: delivery_fingerprint(view.delivery, volatile).hex(), "the body's fingerprint"
    )


def or_unknown(*places: Place) -> Extractor:
    """The first of `places`, or the type `unknown`."""
    return first(*places, fixed("unknown"))


def or_body(*places: Place, without: tuple[str, ...] = ()) -> Extractor:
    """The first of `places`, or the body's fingerprint without these paths."""
    return first(*places, body_digest(*without))


def data_digest(*volatile: str) -> Extractor:
    """Like `body_digest`, of the event's own data: for the elements of a batch."""

    def get(view: EventView) -> object:
        try:
            return fingerprint(canonical(view.data), volatile).hex()
        except RecursionError:
            raise Rejected(Reason.BAD_BODY, "the body is nested too deeply") from None

    return Extractor(get, "the event's fingerprint")


def text(pick: Extractor, view: EventView) -> str:
    """Return what `pick` finds, as text: a string that is not empty, or an integer.

    Raises: Rejected for anything else (a boolean, a list, nothing), naming the place and never the value.
    """
    value = pick.get(view)
    found = _as_text(value)
    if found is not None:
        return found
    if value is None:
        raise Rejected(pick.absent, f"{pick.where} is missing")
    raise Rejected(pick.junk, f"{pick.where} is neither a text nor an integer")


def text_or_none(pick: Extractor | None, view: EventView) -> str | None:
    """Like `text`, for what an event can do without."""
    try:
        return _as_text(pick.get(view)) if pick else None
    except Rejected:
        return None


def _as_text(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _put_all(picks: Sequence[Extractor]) -> Callable[[Any, str], Any] | None:
    """Put one value at every place, which is enough to make samples of different ids differ."""
    if not any(pick.put for pick in picks):
        return None

    def put(data: Any, value: str) -> Any:  # noqa: ANN401
        for pick in picks:
            data = pick.put(data, value) if pick.put else data
        return data

    return put


def _one_place(path: str) -> tuple[json_paths.Step, ...]:
    steps = json_paths.parse(path)
    if None in steps:
        msg = f"{path!r} names many places; expected one"
        raise ValueError(msg)
    return steps
