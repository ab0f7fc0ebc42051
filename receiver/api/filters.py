"""Which events: the same filter in a query and in the body of a bulk replay."""

from typing import Literal

from pydantic import Field

from receiver.api.fields import Asked, Moment, Name, Text
from receiver.ledger.desk import Filter

Status = Literal["received", "running", "waiting", "done", "dead", "ignored", "held"]


class EventFilter(Asked):
    """Which events; what is left out takes all."""

    source: Name | None = None
    provider: Name | None = None
    type: Text | None = Field(None, description="`*` stands for any text: `invoice.*`")
    status: Status | None = None
    account: Text | None = None
    event_id: Text | None = Field(None, description="how the sender's id begins")
    since: Moment | None = Field(None, description="received then or later")
    until: Moment | None = Field(None, description="received before that")

    @property
    def wanted(self) -> Filter:
        """The filter as the ledger knows it."""
        return Filter(**{name: getattr(self, name) for name in EventFilter.model_fields})
