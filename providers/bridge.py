"""Bridge (stablecoins) signs the SHA-256 of `<t>.<body>` with RSA (SHA-256 again), in a header like `t=…,v0=…`.

The secret is the public key of the endpoint, in PEM, which Bridge shows when the webhook is made. So the text is hashed
twice: once by Bridge, and once by the signature, as the vector on its page shows. The time is in milliseconds, new for
each attempt, and ten minutes old at most. The id is `$.event_id`.

https://apidocs.bridge.xyz/platform/additional-information/webhooks/signature
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)
from hookonce.providers.kit.schemes.public_key_signature import Signed

scheme = Signed(
    header="x-webhook-signature",
    key="v0",
    algorithm="rsa-sha256",
    signed="{timestamp}.{body}",
    hashed_by="sha256",
    timestamp=Timestamp(key="t", unit="ms", tolerance=timedelta(minutes=10)),
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.event_id"), body_digest()),
    type=first(field("$.event_type"), fixed("unknown")),
    account=field("$.event_object.customer_id"),
    occurred_at=field("$.event_created_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="its page says that it tries again, and not for how long",
    identity=told_apart_by(
        "$.event_id", "body", because="every event has an id; what has none is a test message"
    ),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.bridge.xyz/",
)
