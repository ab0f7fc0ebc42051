"""Dwolla signs the body with HMAC-SHA256, in hex; the key is the secret given when the subscription was made.

The id is `$.id`, the type `$.topic`. There are eight retries within 72 hours.

https://developers.dwolla.com/docs/working-with-webhooks
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="x-request-signature-sha-256")
sign = kit.signer(scheme.sign, type="x-dwolla-topic")
events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown("$.topic"),
    account="$._links.account.href",
    occurred_at="$.timestamp",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(4),
    identity=kit.told_apart_by("$.id"),
    setup_url="https://dashboard.dwolla.com/applications",
)
