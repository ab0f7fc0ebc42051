"""Rootly signs `<t><body>` with HMAC-SHA256, in hex: `X-Rootly-Signature: t=…,v1=…`, without a dot in between.

The id is `$.event.id`, the type `$.event.type` (`incident.created`).

https://docs.rootly.com/configuration/webhooks
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.event.id"), type=kit.or_unknown("$.event.type"), occurred_at="$.event.issued_at"
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header="x-rootly-signature", key="v1", signed="{timestamp}{body}", timestamp=kit.Timestamp(key="t")
    ),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.event.id"),
    setup_url="https://rootly.com/account/webhooks",
)
