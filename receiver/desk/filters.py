"""Which events: the same filter in a query and in the body of a bulk replay."""

from typing import Literal

from pydantic import Field

from hookonce.receiver.desk.models import IssueId, Name, RequestModel, Text, Time
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.states import EventStatus

Status = Literal[
    EventStatus.RECEIVED,
    EventStatus.RUNNING,
    EventStatus.WAITING,
    EventStatus.DONE,
    EventStatus.DEAD,
    EventStatus.IGNORED,
    EventStatus.HELD,
    EventStatus.LOST,
]


class EventFilter(RequestModel):
    """Which events; what is left out takes all."""

    source: Name | None = Field(None, description="only of this source")
    provider: Name | None = Field(None, description="only of this provider")
    type: Text | None = Field(None, description="`*` stands for any text: `invoice.*`")
    status: Status | None = Field(None, description="only in this status")
    account: Text | None = Field(None, description="only of this account of the sender's")
    event_id: Text | None = Field(None, description="how the sender's id begins")
    since: Time | None = Field(None, description="received then or later")
    until: Time | None = Field(None, description="received before that")
    handler: Text | None = Field(None, description="with a dead run of this handler")
    error: Text | None = Field(
        None,
        description="with a dead run whose latest error is this; `*` stands for any text: `TimeoutError*`",
    )
    issue: IssueId | None = Field(None, description="with a dead run of this issue")

    @property
    def wanted(self) -> Filter:
        """The filter as the ledger knows it."""
        return Filter(**{name: getattr(self, name) for name in EventFilter.model_fields})
