"""Primer signs the body with HMAC-SHA256, in base64, in `X-Signature-Primary`.

While secrets are rotated `X-Signature-Secondary` has a second one; either will do.

There is no id that Primer promises (`$.eventId` if it is there), so the body is known by its fingerprint
without `$.signedAt`, which differs from attempt to attempt. The type is `$.eventType`.

https://primer.io/docs/api-reference/get-started/webhooks
"""

from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(header=("x-signature-primary", "x-signature-secondary"), every=True, encoding="base64")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
VOLATILE = ("$.signedAt",)
events = one_event(
    id=first(field("$.eventId"), body_digest(*VOLATILE)),
    type=first(field("$.eventType"), fixed("unknown")),
    account=field("$.notificationConfig.id"),
    occurred_at=field("$.date"),
)
SETUP = "https://dashboard.primer.io/developers/webhooks"
