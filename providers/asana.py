"""Asana signs the body with HMAC-SHA256, in hex, with a secret that it hands out when a webhook is made.

That first request has `X-Hook-Secret` and no signature; the same header in the answer accepts it, and the
value is the webhook's secret from then on. Anyone who knows the URL can send such a request: the first one is
kept, and counts only where none is configured. Each webhook has its own: configure all of a source's.
Events come in batches and have no ids: their own is made of who did what to what, and when. An empty batch is
a heartbeat, sent every eight hours; two failures in a row and a day later the webhook is gone.

https://developers.asana.com/docs/webhooks-guide
"""

from hookonce.providers import kit

_event = (
    kit.field("$.user.gid"),
    kit.field("$.created_at"),
    kit.field("$.action"),
    kit.field("$.resource.gid"),
    kit.field("$.parent.gid"),
    kit.field("$.change"),
)
events = kit.many_events(
    items="$.events",
    id=kit.digest(*_event, "$.resource.resource_type"),
    type=kit.first(kit.join("$.resource.resource_type", "$.action", by="."), "$.action"),
    occurred_at="$.created_at",
)

handshake = kit.hands_out_a_secret("x-hook-secret", beside="x-hook-signature")
sender = kit.Sender(
    scheme=kit.Hmac(header="x-hook-signature"),
    id_is_signed=True,
    retry_horizon=kit.days(2),
    disables_after="a day of failures",
    identity=kit.told_apart_by("$.events[*].created_at + $.events[*].resource.gid + $.events[*].action"),
    setup_url="https://developers.asana.com/reference/createwebhook",
)
