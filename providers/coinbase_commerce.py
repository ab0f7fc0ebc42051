"""Coinbase Commerce signs the body with HMAC-SHA256, in hex.

The id is `$.event.id`; `$.id` is that of the delivery, and with `$.attempt_number` and `$.scheduled_for` it is
new for each attempt. Retries go on for three days.

https://docs.cdp.coinbase.com/commerce/docs/webhooks-security
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(header="x-cc-webhook-signature")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
VOLATILE = ("$.id", "$.attempt_number", "$.scheduled_for")
events = one_event(
    id=first(field("$.event.id"), body_digest(*VOLATILE)),
    type=first(field("$.event.type"), fixed("unknown")),
    occurred_at=field("$.event.created_at"),
)
RETRY_HORIZON = timedelta(days=4)
SETUP = "https://beta.commerce.coinbase.com/settings/notifications"
