"""Where a sender keeps what we want: a header, a place in the body, or something made of several.

Each function makes a `Pick`, which `one_event` and `many_events` apply to every delivery.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from providers import Delivery, Reason, Rejected
from providers.kit import paths
from providers.kit.fingerprint import canonical, fingerprint


class View(NamedTuple):
    """What a pick looks at: the delivery, the event's own data, the whole body (of a batch), the place in it."""

    delivery: Delivery
    data: Any
    whole: Any
    at: int = 0


@dataclass(frozen=True, slots=True)
class Pick:
    """How to get one value: `get` gives None where there is none, `where` names the place in messages.

    `plant` puts a value at this place of a sample body, None where the place is not in the body.
    """

    get: Callable[[View], object]
    where: str
    absent: Reason = Reason.BAD_BODY
    junk: Reason = Reason.BAD_BODY
    plant: Callable[[Any, str], Any] | None = None


def header(*names: str) -> Pick:
    """The first of these headers that was sent."""
    lower = tuple(name.lower() for name in names)

    def get(view: View) -> object:
        sent: Mapping[str, str] = view.delivery.headers
        return next((sent[name] for name in lower if name in sent), None)

    return Pick(get, f"header {' or '.join(lower)}", Reason.MISSING_HEADER, Reason.BAD_HEADER)


def field(path: str) -> Pick:
    """A place in the event's data: `$.id`; in a form, a field. Raises: ValueError for what is no path."""
    steps = _one_place(path)
    return Pick(
        lambda view: paths.find(view.data, steps),
        path,
        plant=lambda data, value: paths.plant(data, steps, value),
    )


def whole(path: str) -> Pick:
    """A place in the whole body of a batch, outside its elements. Raises: ValueError for what is no path."""
    steps = _one_place(path)
    return Pick(lambda view: paths.find(view.whole, steps), f"{path} of the batch")


def query(name: str) -> Pick:
    """A parameter in the URL's query."""

    def get(view: View) -> object:
        try:
            return dict(parse_qsl(urlsplit(view.delivery.url).query, max_num_fields=_PARAMETERS)).get(name)
        except ValueError:
            return None

    return Pick(get, f"query parameter {name}", Reason.BAD_HEADER, Reason.BAD_HEADER)


def position() -> Pick:
    """The event's place in its batch, from 0: tells apart events of one batch that are alike."""
    return Pick(lambda view: view.at, "the place in the batch")


def fixed(text: str) -> Pick:
    """Always `text`; last in `first`, what holds when the sender said nothing."""
    return Pick(lambda _: text, "a fixed text")


def first(*picks: Pick) -> Pick:
    """The first of `picks` that has a text or a number; an empty text is nothing."""

    def get(view: View) -> object:
        odd: object = None
        for pick in picks:
            value = pick.get(view)
            if isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "":
                return value
            odd = value if odd is None else odd
        return odd

    return Pick(
        get, " or ".join(pick.where for pick in picks), picks[0].absent, picks[0].junk, picks[0].plant
    )


def only_if(pick: Pick, pattern: str, then: Pick) -> Pick:
    """`then`, where the whole text of `pick` fits the regular expression `pattern`."""
    form = re.compile(pattern)

    def get(view: View) -> object:
        text = text_or_none(pick, view)
        return then.get(view) if text is not None and form.fullmatch(text) else None

    return Pick(get, then.where, then.absent, then.junk, then.plant)


def joined(*picks: Pick, by: str = ":") -> Pick:
    """An id of several values, `created:7:1767225600`; None unless every one is a text or an integer."""

    def get(view: View) -> object:
        values = [text_or_none(pick, view) for pick in picks]
        return by.join(value for value in values if value) if all(values) else None

    return Pick(get, " + ".join(pick.where for pick in picks), plant=_plant_all(picks))


def digest(*picks: Pick) -> Pick:
    """An id for senders that have none: SHA-256 (hex) over these values, in this order.

    The same for every redelivery if the values are; None if every one of them is absent.
    """

    def get(view: View) -> object:
        values = [pick.get(view) for pick in picks]
        try:
            made = canonical(values)
        except RecursionError:
            raise Rejected(Reason.BAD_BODY, "the body is nested too deeply") from None
        return sha256(made).hexdigest() if any(value is not None for value in values) else None

    return Pick(get, " + ".join(pick.where for pick in picks), plant=_plant_all(picks))


def body_digest(*volatile: str) -> Pick:
    """An id for senders that have none: the body's fingerprint (hex) without the `volatile` paths."""
    return Pick(lambda view: fingerprint(view.delivery.body, volatile).hex(), "the body's fingerprint")


def data_digest(*volatile: str) -> Pick:
    """Like `body_digest`, of the event's own data: for the elements of a batch."""

    def get(view: View) -> object:
        try:
            return fingerprint(canonical(view.data), volatile).hex()
        except RecursionError:
            raise Rejected(Reason.BAD_BODY, "the body is nested too deeply") from None

    return Pick(get, "the event's fingerprint")


def text(pick: Pick, view: View) -> str:
    """What `pick` finds, as text: a string that is not empty, or an integer.

    Raises: Rejected for anything else (a boolean, a list, nothing), naming the place and never the value.
    """
    value = pick.get(view)
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None:
        raise Rejected(pick.absent, f"{pick.where} is missing")
    raise Rejected(pick.junk, f"{pick.where} is neither a text nor an integer")


def text_or_none(pick: Pick | None, view: View) -> str | None:
    """Like `text`, for what an event can do without."""
    try:
        return text(pick, view) if pick else None
    except Rejected:
        return None


def _plant_all(picks: Sequence[Pick]) -> Callable[[Any, str], Any] | None:
    """Put one value at every place, which is enough to make samples of different ids differ."""
    if not any(pick.plant for pick in picks):
        return None

    def plant(data: Any, value: str) -> Any:  # noqa: ANN401
        for pick in picks:
            data = pick.plant(data, value) if pick.plant else data
        return data

    return plant


_PARAMETERS: Final = 100


def _one_place(path: str) -> tuple[paths.Step, ...]:
    steps = paths.parse(path)
    if None in steps:
        msg = f"{path!r} names many places; expected one"
        raise ValueError(msg)
    return steps
