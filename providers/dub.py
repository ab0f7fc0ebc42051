"""Dub signs the body with HMAC-SHA256, in hex.

The id is `$.id`, the type `$.event`.

https://dub.co/docs/concepts/webhooks/introduction
"""

from hookonce.providers import kit

events = kit.one_event(id=kit.or_body("$.id"), type=kit.or_unknown("$.event"), occurred_at="$.createdAt")
sender = kit.Sender(
    scheme=kit.Hmac(header="dub-signature"),
    id_is_signed=True,
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by("$.id"),
    subject=kit.about(entity=("$.data.id",), version="$.createdAt"),
    setup_url="https://app.dub.co/settings/webhooks",
)
