"""Wise signs the body with its RSA key (PKCS#1 v1.5, SHA-256), in base64, in `X-Signature-SHA256`.

The secret is Wise's public key; sandbox and production have different ones. The older `X-Signature` (SHA-1)
is never looked at. The id is `X-Delivery-Id`, the same on every attempt and not covered by the signature. A
new subscription is tried with `X-Test-Notification: true`; that is an event too. Wise retries for two weeks.

https://docs.wise.com/guides/developer/webhooks/event-handling
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    body_digest,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
    told_apart_by,
)
from hookonce.providers.kit.schemes.public_key_signature import Signed

scheme = Signed(header="x-signature-sha256", algorithm="rsa-sha256")
verify = scheme.verify
sign = signer(scheme.sign, event_id="x-delivery-id")
events = one_event(
    id=first(header("x-delivery-id"), body_digest()),
    type=first(field("$.event_type"), fixed("unknown")),
    account=first(field("$.data.resource.profile_id"), field("$.subscription_id")),
    occurred_at=field("$.sent_at"),
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=14),
    identity=told_apart_by("header x-delivery-id"),
    check_secret=scheme.check_secret,
    setup_url="https://docs.wise.com/guides/developer/webhooks",
)
