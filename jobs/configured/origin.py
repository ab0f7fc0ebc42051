"""The run of an event, for what goes on to others: its cycle, and whether its body is a whole one."""

from dataclasses import dataclass

from hookonce.jobs.event import Capability, ReceivedEvent

ORIGIN = "origin"
"""The name of this capability."""


@dataclass
class Origin(Capability):
    """A replay is another `cycle`; an event `is_element` that was a part of a batch."""

    cycle: int
    is_element: bool


def origin_of(event: ReceivedEvent) -> Origin:
    """Return the origin of an event; outside of a run it has no cycle."""
    found: Origin | None = event.capability(ORIGIN)
    return found or Origin(0, is_element=False)


def cycle_key(event: ReceivedEvent) -> str:
    """Return the key of a run's cycle: each attempt has the same, a replay another."""
    return f"{event.idempotency_key}-{origin_of(event).cycle}"
