"""Primer signs the body with HMAC-SHA256, in base64, in `X-Signature-Primary`.

While secrets are rotated `X-Signature-Secondary` has a second one; each header that is there is tried, and one right
signature is enough.

There is no id that Primer promises (`$.eventId` if it is there), so the body is known by its fingerprint
without `$.signedAt`, which differs from attempt to attempt. The type is `$.eventType`.

https://primer.io/docs/api-reference/get-started/webhooks
"""

from hookonce.providers import kit

_VOLATILE = ("$.signedAt",)
events = kit.one_event(
    id=kit.or_body("$.eventId", without=_VOLATILE),
    type=kit.or_unknown("$.eventType"),
    account="$.notificationConfig.id",
    occurred_at="$.date",
)
sender = kit.Sender(
    scheme=kit.Hmac(header=("x-signature-primary", "x-signature-secondary"), every=True, encoding="base64"),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.eventId", "$.date"),
    volatile=_VOLATILE,
    setup_url="https://dashboard.primer.io/developers/webhooks",
)
