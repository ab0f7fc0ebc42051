"""Airship signs `<X-UA-TIMESTAMP>:<body>` with HMAC-SHA256, in hex.

The id is `$.id`; what has none is known by its fingerprint. What Airship sends for open channels is not
taken: it is compressed, and a URL below ours is asked for a confirmation code.

https://docs.airship.com/
"""

from hookonce.providers import kit

events = kit.one_event(id=kit.or_body("$.id"), type=kit.or_unknown("$.type"), occurred_at="$.occurred")
sender = kit.Sender(
    scheme=kit.Hmac(
        header="x-ua-signature", signed="{timestamp}:{body}", timestamp=kit.Timestamp(header="x-ua-timestamp")
    ),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.id", "$.audience"),
    setup_url="https://go.airship.com/",
)
