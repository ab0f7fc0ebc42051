"""Freshdesk signs nothing; a rule's webhook brings the user name and password, or the header, that it was set up with.

The secret is `user:password` (HTTP Basic); option `in` names a custom header instead. The body is a template of the
user's, without id or time, and the same body comes for the next change of the same kind: so the hour of receipt is part
of the event. Add `{{ticket.modified_on}}` to the template to tell changes within an hour apart. The type is what
triggered the rule, if the template says so. A webhook that fails is tried again every half an hour, for a day.

https://support.freshdesk.com/support/solutions/articles/132589-using-webhooks-in-automation-rules
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    any_body,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    told_apart_by,
)
from hookonce.providers.kit.registry.token_sender import token_sender

_ticket = "$.freshdesk_webhook"
events = one_event(
    id=body_digest(),
    type=first(field(f"{_ticket}.triggered_event"), fixed("ticket")),
    account=field(f"{_ticket}.ticket_url"),
    read=any_body,
)
configure = token_sender(
    "freshdesk",
    "basic",
    events=events,
    sender=Sender(
        id_is_signed=False,
        body_is_unsigned=True,
        retry_horizon=timedelta(days=1),
        identity=told_apart_by("receipt"),
        id_period=timedelta(hours=1),
        setup_url="https://support.freshdesk.com/support/solutions/articles/132589-using-webhooks-in-automation-rules",
    ),
)
