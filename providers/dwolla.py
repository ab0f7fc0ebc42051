"""Dwolla signs the body with HMAC-SHA256, in hex; the key is the secret given when the subscription was made.

The id is `$.id`, the type `$.topic`. There are eight retries within 72 hours.

https://developers.dwolla.com/docs/working-with-webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(header="x-request-signature-sha-256")
verify, CHECK = scheme.verify, scheme.check_secret
sign = signer(scheme.sign, type="x-dwolla-topic")
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.topic"), fixed("unknown")),
    account=field("$._links.account.href"),
    occurred_at=field("$.timestamp"),
)
RETRY_HORIZON = timedelta(days=4)
SETUP = "https://dashboard.dwolla.com/applications"
