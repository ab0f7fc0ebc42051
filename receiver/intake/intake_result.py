"""A delivery that was verified, and the outcome of it, as that is answered and noted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

from hookonce.providers import Delivery, Event, Rejected, Reply
from hookonce.receiver.intake.deduplication import DeliveryEvents
from hookonce.receiver.ledger.store import NewEvent, Stored, Verdict

KNOWN = frozenset({Verdict.DUPLICATE, Verdict.CONFLICT})
"""The verdicts on an event whose id the ledger holds already."""


class Arrived(NamedTuple):
    """A delivery that was verified: its events, what is stored of them, and its parts that did not verify."""

    events: Sequence[Event]
    new: DeliveryEvents
    refused: Sequence[tuple[Delivery, Rejected]] = ()


@dataclass(slots=True)
class IntakeResult:
    """The outcome of a delivery: `reply` where the sender wants its own; its events in order, `new` and as `rows`.

    is_duplicate: every event was known before; False for a delivery of none
    is_conflict: an event came with another body than before
    """

    events: Sequence[tuple[str, Verdict]] = ()
    reply: Reply | None = None
    rows: Sequence[Stored] = ()
    new: Sequence[NewEvent] = ()
    is_duplicate: bool = False
    is_conflict: bool = False

    @classmethod
    def of(cls, events: Sequence[Event], new: Sequence[NewEvent], rows: Sequence[Stored]) -> Self:
        """Return the outcome of a delivery of events, by the rows that are stored of them."""
        verdicts = [row.verdict for row in rows]
        return cls(
            [(event.id, verdict) for event, verdict in zip(events, verdicts, strict=True)],
            None,
            rows,
            new,
            KNOWN.issuperset(verdicts),
            Verdict.CONFLICT in verdicts,
        )

    def let_go(self) -> None:
        """Free what is held of each event, one after the other: in one piece, no other thread goes on meanwhile."""
        for held in (self.new, self.rows, self.events):
            while isinstance(held, list) and held:
                held.pop()
