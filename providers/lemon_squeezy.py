"""Lemon Squeezy signs the body with HMAC-SHA256, in hex, in `X-Signature`.

What `$.meta.webhook_id` stands for is nowhere said, so the id is made of it, the event's name, the object's id
and when that was changed: the same on every retry, and never one for two changes. The type is the event's name,
the account the store. Three retries, after 5, 25 and 125 seconds.

https://docs.lemonsqueezy.com/help/webhooks/signing-requests
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    header,
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-signature")
verify = scheme.verify
sign = signer(scheme.sign)
_name = first(field("$.meta.event_name"), header("x-event-name"))
events = one_event(
    id=first(
        join(field("$.meta.webhook_id"), _name, field("$.data.id"), field("$.data.attributes.updated_at")),
        body_digest(),
    ),
    type=_name,
    account=field("$.data.attributes.store_id"),
    occurred_at=field("$.data.attributes.updated_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by("$.meta.webhook_id + $.data.id + $.data.attributes.updated_at"),
    check_secret=scheme.check_secret,
    setup_url="https://app.lemonsqueezy.com/settings/webhooks",
)
