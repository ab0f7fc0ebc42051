"""The run of an event, for what goes on to others: its cycle, and whether its body is a whole one."""

from dataclasses import dataclass

from hookonce.jobs.event import Capability

ORIGIN = "origin"
"""The name of this capability."""


@dataclass
class Origin(Capability):
    """A replay is another `cycle`; an event `is_element` that was a part of a batch."""

    cycle: int
    is_element: bool
