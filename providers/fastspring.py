"""FastSpring signs the body with HMAC-SHA256, in base64, if its webhook has a secret; without one it is refused.

Several events come in one delivery, as the list `$.events`, each with an id that automatic retries keep. What is
sent again by hand has a new id, and is a new event. FastSpring tries for a week, twelve times
(https://developer.fastspring.com/reference/processed-and-unprocessed-webhook-events).

https://developer.fastspring.com/docs/message-security
"""

from hookonce.providers import kit

events = kit.many_events(
    items="$.events",
    id=kit.first("$.id", kit.data_digest()),
    type=kit.or_unknown("$.type"),
    occurred_at="$.created",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-fs-signature", encoding="base64"),
    id_is_signed=True,
    retry_horizon=kit.days(8),
    identity=kit.told_apart_by("$.events[*].id"),
    mode=kit.mode("$.live", live=(True,)),
    setup_url="https://app.fastspring.com/integrations/webhooks.xml",
)
