"""Sending an event again with another body: as a test event, signed as its sender would sign it."""

from pydantic import Field

from hookonce.receiver.desk.events import EventPath, found_event, get_event
from hookonce.receiver.desk.models import RequestModel
from hookonce.receiver.desk.refusals import Conflict, NotFound
from hookonce.receiver.desk.registry import Desk, action, looks_at
from hookonce.receiver.desk.sources import TestEvent
from hookonce.receiver.intake import test_events
from hookonce.receiver.intake.test_events import MAX_EDITED
from hookonce.receiver.ledger.access.api_tokens import Scope

_CODE = "no_test_event"


class EditedEvent(RequestModel):
    """The body that is sent instead, and whether handlers run on it."""

    body: str = Field(
        max_length=MAX_EDITED, description="as text; the event's own id in it becomes a new one"
    )
    run: bool = Field(
        default=False, description="have handlers run on it; else it is held until it is released"
    )


@action(
    scope=Scope.ADMIN,
    asks="which event it is made of",
    looks=looks_at(get_event),
    audits=test_events.ACTION_EDITED,
    is_atomic=False,
)
def send_edited_event(desk: Desk, which: EventPath, asked: EditedEvent) -> TestEvent:
    """Send an event again with another body, signed with its source's first secret, as a test event with its own id.

    Its header `hookonce-edited-from` names the event that it was made of. Outside `hookonce dev`, only where the source
    has `tests = true`; audited.
    """
    found = found_event(desk, which)
    event, stored = found.event, found.body
    source = desk.settings.sources.get(event.source)
    if desk.intake is None:
        raise Conflict("no delivery is taken here; ask a receiver", code=_CODE)
    if source is None:
        raise Conflict(f"source '{event.source}' is not configured; nothing can be signed for it", code=_CODE)
    if stored is None:
        raise NotFound(f"the body of event {event.id} {found.why_no_body}; only its row is left")
    try:
        body = asked.body.encode()
        edit = test_events.Edit(source, event.id, event.event_id, event.type, stored, body)
        row, event_id, kind = test_events.send_edited(
            desk.intake, desk.connection, edit, desk.who, runs=asked.run
        )
    except test_events.NotPossible as error:
        raise Conflict(str(error), code=_CODE) from None
    return TestEvent(id=row.id, event_id=event_id, type=kind)
