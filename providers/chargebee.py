"""Chargebee brings a user name and password (HTTP Basic), and signs nothing.

The secret is `user:password`, as in the webhook's settings. The id is `$.id`, the same on every attempt;
events may come out of order, and `$.webhook_status` changes. Ask its API before money moves. Chargebee tries
seven more times in three and a half days.

https://www.chargebee.com/docs/billing/2.0/site-configuration/webhook_settings
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    Token,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Token(basic=True)
verify = scheme.verify
sign = signer(scheme.sign)
_VOLATILE = ("$.webhook_status", "$.webhooks")
events = one_event(
    id=first(field("$.id"), body_digest(*_VOLATILE)),
    type=first(field("$.event_type"), fixed("unknown")),
    occurred_at=field("$.occurred_at"),
)

sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(days=4),
    identity=told_apart_by("$.id"),
    volatile=_VOLATILE,
    check_secret=scheme.check_secret,
    setup_url="https://app.chargebee.com/webhooks",
)
