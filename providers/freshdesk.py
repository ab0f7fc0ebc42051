"""Freshdesk signs nothing; a rule's webhook brings the user name and password, or the header, that it was set up with.

The secret is `user:password` (HTTP Basic); option `in` names a custom header instead. The body is a template of the
user's, without id or time, and the same body comes for the next change of the same kind: so the minute of receipt is
part of the event. A webhook that fails is tried again every half an hour, for a day: an attempt that we took and
whose answer was lost is another event then, unless the option `period` (seconds) is longer, and with `period = 3600`
a change that comes again within the hour is lost. Add `{{ticket.modified_on}}` to the template, and neither happens.
The type is what triggered the rule, if the template says so.

https://support.freshdesk.com/support/solutions/articles/132589-using-webhooks-in-automation-rules
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from hookonce.providers import kit

_ticket = "$.freshdesk_webhook"
events = kit.one_event(
    id=kit.join(kit.fixed("ticket"), kit.body_digest()),
    type=kit.first(kit.field(f"{_ticket}.triggered_event"), kit.fixed("ticket")),
    account=kit.field(f"{_ticket}.ticket_url"),
    read=kit.any_body,
)
_SENDER: Final = kit.Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=1),
    identity=kit.told_apart_by("receipt"),
    id_period=timedelta(minutes=1),
    setup_url="https://support.freshdesk.com/support/solutions/articles/132589-using-webhooks-in-automation-rules",
)


@kit.with_options("freshdesk")
def configure(given: kit.Options) -> kit.Configured:
    """Make the provider with a source's options."""
    scheme = kit.declared_options.token_scheme(given, "basic")
    within = timedelta(seconds=given.seconds("period", 60))
    return kit.by_token(scheme, events=events, sender=replace(_SENDER, id_period=within))
