"""Bridge (stablecoins) signs the SHA-256 of `<t>.<body>` with RSA (SHA-256 again), in a header like `t=…,v0=…`.

The secret is the public key of the endpoint, in PEM, which Bridge shows when the webhook is made. So the text is hashed
twice: once by Bridge, and once by the signature, as the vector on its page shows. The time is in milliseconds, new for
each attempt, and ten minutes old at most. The id is `$.event_id`.

https://apidocs.bridge.xyz/platform/additional-information/webhooks/signature
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.event_id"),
    type=kit.or_unknown("$.event_type"),
    account="$.event_object.customer_id",
    occurred_at="$.event_created_at",
)
sender = kit.Sender(
    scheme=kit.Signed(
        header="x-webhook-signature",
        key="v0",
        algorithm="rsa-sha256",
        signed="{timestamp}.{body}",
        hashed_by="sha256",
        timestamp=kit.Timestamp(key="t", unit="ms", tolerance=kit.minutes(10)),
    ),
    id_is_signed=True,
    retry_horizon="its page says that it tries again, and not for how long",
    identity=kit.told_apart_by(
        "$.event_id", "body", because="every event has an id; what has none is a test message"
    ),
    setup_url="https://dashboard.bridge.xyz/",
)
