"""Squarespace signs the body with HMAC-SHA256, in hex; the key is the subscription's secret, decoded from hex.

The id is `$.id`, the notification's, the type the topic, `order.create`, the account the website. Several
retries, after which the subscription is removed.

https://developers.squarespace.com/webhooks/overview
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(header="squarespace-signature", secret="hex")  # noqa: S106  a codec's name
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.topic"), fixed("unknown")),
    account=field("$.websiteId"),
    occurred_at=field("$.createdOn"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://developers.squarespace.com/webhooks/overview"
