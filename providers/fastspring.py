"""FastSpring signs the body with HMAC-SHA256, in base64, if its webhook has a secret; without one it is refused.

Several events come in one delivery, as the list `$.events`, each with an id that automatic retries keep. What is
sent again by hand has a new id, and is a new event. FastSpring tries until the answer is 200.

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
    retry_horizon="not known: no statement of its own is at hand",
    identity=kit.told_apart_by("$.events[*].id"),
    setup_url="https://app.fastspring.com/integrations/webhooks.xml",
)
