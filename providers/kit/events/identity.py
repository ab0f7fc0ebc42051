"""Can two different events of a sender have equal bytes? What tells them apart, and what a retry changes.

    identity=told_apart_by("$.id")
    identity=told_apart_by("$.id", "$.event + $.item + $.finished_at")
    identity=told_apart_by("signed period", new_on_retry=("signed time",), known_from="https://acme.example/docs")

The contract test (`conformance.equal_bytes`) takes each delivery, makes another event of it by changing nothing but
what is named here, and wants another id; then it changes what a retry changes, and wants the same.
"""

import re
from dataclasses import dataclass
from typing import Final

SIGNED_TIME: Final = "signed time"
SIGNED_PERIOD: Final = "signed period"
RECEIPT: Final = "receipt"
BODY: Final = "body"
_PLACE: Final = re.compile(
    rf"\$.*|(?:header|query|claim) \S+|xml \S+|{SIGNED_TIME}|{SIGNED_PERIOD}|{RECEIPT}|{BODY}"
)


@dataclass(frozen=True, slots=True)
class Identity:
    """How the events of a sender are told apart, as `told_apart_by` makes it.

    tells: alternatives, each a group of places; the first whose places are all in a delivery is the one that counts
    """

    tells: tuple[tuple[str, ...], ...]
    new_on_retry: tuple[str, ...] = ()
    known_from: str = ""
    because: str = ""

    @property
    def places(self) -> tuple[str, ...]:
        """Every place that is named."""
        return tuple(place for group in self.tells for place in group)


def told_apart_by(
    *tells: str, new_on_retry: tuple[str, ...] = (), known_from: str = "", because: str = ""
) -> Identity:
    """Declare what makes two events of otherwise equal deliveries two ids, the first alternative that was sent.

    A place is `$.path` (JSON, a form, a multipart form, and JSON in a field of these; `$.events[*].id` of each element
    of a batch), `xml a/b`, `header x-id`, `query id`, `claim iat` (of a token); or
        `signed time`: the time that is signed, where a retry has the same
        `signed period`: the time that is signed, where a retry has a new one soon (`one_event(attempts=…)`)
        `receipt`: the time at which it is received (`Sender(id_period=…)`)
        `body`: nothing but the whole body; `because` says why equal bytes are one event then
    Several places joined by ` + ` belong together: each of them makes a difference, and all must be there.

    new_on_retry: places that are new each time that the sender tries again, `signed time` among them
    known_from: the page that says so; needed where the signed time is named

    Raises: ValueError for what is no place, and for a claim without its reason.
    """
    groups = tuple(tuple(group.split(" + ")) for group in tells)
    for place in (*(place for group in groups for place in group), *new_on_retry):
        if not _PLACE.fullmatch(place):
            msg = (
                f"{place!r} is not a place; expected one like '$.id', 'header x-id', 'signed time' or 'body'"
            )
            raise ValueError(msg)
    identity = Identity(groups, new_on_retry, known_from, because)
    named = {*identity.places, *new_on_retry}
    if not tells:
        raise ValueError("nothing tells events apart; name a place, or 'body' with the reason")
    if BODY in named and not because:
        raise ValueError("'body' needs because=…: why equal bytes can't be two events")
    if named & {SIGNED_TIME, SIGNED_PERIOD} and not known_from:
        raise ValueError("a signed time needs known_from=…: the page that says whether a retry has a new one")
    return identity
