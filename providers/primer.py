"""Primer signs the body with HMAC-SHA256, in base64, in `X-Signature-Primary`.

While secrets are rotated `X-Signature-Secondary` has a second one; either will do.

There is no id that Primer promises (`$.eventId` if it is there), so the body is known by its fingerprint
without `$.signedAt`, which differs from attempt to attempt. The type is `$.eventType`.

https://primer.io/docs/api-reference/get-started/webhooks
"""

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header=("x-signature-primary", "x-signature-secondary"), every=True, encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign)
_VOLATILE = ("$.signedAt",)
events = one_event(
    id=first(field("$.eventId"), body_digest(*_VOLATILE)),
    type=first(field("$.eventType"), fixed("unknown")),
    account=field("$.notificationConfig.id"),
    occurred_at=field("$.date"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$.eventId", "$.date"),
    volatile=_VOLATILE,
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.primer.io/developers/webhooks",
)
