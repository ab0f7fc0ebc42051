"""GoCardless signs the body with HMAC-SHA256, in hex, in `Webhook-Signature`.

Deliveries are batches of up to 250 events, each with an id that stays the same; `$.meta.webhook_id` is the
delivery's. The type is the resource and the action, `payments.confirmed`, the account the organisation. Eight
retries at growing intervals.

https://developer.gocardless.com/getting-started/staying-up-to-date-with-webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    field,
    first,
    join,
    many_events,
    signer,
    told_apart_by,
)

scheme = Hmac(header="webhook-signature")
verify = scheme.verify
sign = signer(scheme.sign)
events = many_events(
    items="$.events",
    id=field("$.id"),
    type=first(join(field("$.resource_type"), field("$.action"), by="."), field("$.resource_type")),
    account=field("$.links.organisation"),
    occurred_at=field("$.created_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=told_apart_by("$.events[*].id"),
    check_secret=scheme.check_secret,
    setup_url="https://manage.gocardless.com/developers",
)
