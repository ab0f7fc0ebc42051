"""Freshdesk signs nothing; a rule's webhook brings the user name and password, or the header, that it was set up with.

The secret is `user:password` (HTTP Basic); option `in` names a custom header instead. The body is a template of the
user's, without id or time, and the same body comes for the next change of the same kind: so the minute of receipt is
part of the event. A webhook that fails is tried again every half an hour, for a day: an attempt that we took and
whose answer was lost is another event then, unless the option `period` (seconds) is longer, and with `period = 3600`
a change that comes again within the hour is lost. Add `{{ticket.modified_on}}` to the template, and neither happens.
The type is what triggered the rule, if the template says so.

https://support.freshdesk.com/support/solutions/articles/132589-using-webhooks-in-automation-rules
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from hookonce.providers.kit import (
    Configured,
    Sender,
    any_body,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    told_apart_by,
)
from hookonce.providers.kit.registry.declared_options import token_scheme
from hookonce.providers.kit.registry.options import Options
from hookonce.providers.kit.registry.token_sender import by_token

_ticket = "$.freshdesk_webhook"
events = one_event(
    id=join(fixed("ticket"), body_digest()),
    former=(body_digest(),),
    type=first(field(f"{_ticket}.triggered_event"), fixed("ticket")),
    account=field(f"{_ticket}.ticket_url"),
    read=any_body,
)
_SENDER: Final = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("receipt"),
    id_period=timedelta(minutes=1),
    former_id_period=timedelta(hours=1),
    setup_url="https://support.freshdesk.com/support/solutions/articles/132589-using-webhooks-in-automation-rules",
)


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = Options(options, "freshdesk")
    scheme = token_scheme(given, "basic")
    within = timedelta(seconds=given.seconds("period", 60))
    given.done()
    return by_token(scheme, events=events, sender=replace(_SENDER, id_period=within))
