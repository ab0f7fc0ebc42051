"""Chargebee brings a user name and password (HTTP Basic), and signs nothing.

The secret is `user:password`, as in the webhook's settings. The id is `$.id`, the same on every attempt;
events may come out of order, and `$.webhook_status` changes. Ask its API before money moves. Chargebee tries
seven more times in three and a half days.

https://www.chargebee.com/docs/billing/2.0/site-configuration/webhook_settings
"""

from datetime import timedelta

from providers.kit import Token, body_digest, field, first, fixed, one_event, signer

scheme = Token(basic=True)
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
VOLATILE = ("$.webhook_status", "$.webhooks")
events = one_event(
    id=first(field("$.id"), body_digest(*VOLATILE)),
    type=first(field("$.event_type"), fixed("unknown")),
    occurred_at=field("$.occurred_at"),
)
ID_IS_SIGNED = False
BODY_IS_UNSIGNED = True
RETRY_HORIZON = timedelta(days=4)
SETUP = "https://app.chargebee.com/webhooks"
