"""GoCardless signs the body with HMAC-SHA256, in hex, in `Webhook-Signature`.

Deliveries are batches of up to 250 events, each with an id that stays the same; `$.meta.webhook_id` is the
delivery's. The type is the resource and the action, `payments.confirmed`, the account the organisation. Eight
retries at growing intervals.

https://developer.gocardless.com/getting-started/staying-up-to-date-with-webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, field, first, joined, many_events, signer

scheme = Hmac(header="webhook-signature")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = many_events(
    items="$.events",
    id=field("$.id"),
    type=first(joined(field("$.resource_type"), field("$.action"), by="."), field("$.resource_type")),
    account=field("$.links.organisation"),
    occurred_at=field("$.created_at"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://manage.gocardless.com/developers"
