"""Wise signs the body with its RSA key (PKCS#1 v1.5, SHA-256), in base64, in `X-Signature-SHA256`.

The secret is Wise's public key; sandbox and production have different ones. The older `X-Signature` (SHA-1)
is never looked at. The id is `X-Delivery-Id`, the same on every attempt and not covered by the signature. A
new subscription is tried with `X-Test-Notification: true`; that is an event too. Wise retries for two weeks.

https://docs.wise.com/guides/developer/webhooks/event-handling
"""

from hookonce.providers import kit

scheme = kit.Signed(header="x-signature-sha256", algorithm="rsa-sha256")
sign = kit.signer(scheme.sign, event_id="x-delivery-id")
events = kit.one_event(
    id=kit.or_body("header x-delivery-id"),
    type=kit.or_unknown("$.event_type"),
    account=kit.first("$.data.resource.profile_id", "$.subscription_id"),
    occurred_at="$.sent_at",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    holds_repeats="a body has `$.sent_at`, besides when it happened (`$.data.occurred_at`)",
    retry_horizon=kit.days(14),
    identity=kit.told_apart_by("header x-delivery-id"),
    setup_url="https://docs.wise.com/guides/developer/webhooks",
)
