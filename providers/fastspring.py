"""FastSpring signs the body with HMAC-SHA256, in base64, if its webhook has a secret; without one it is refused.

Several events come in one delivery, as the list `$.events`, each with an id that automatic retries keep. What is
sent again by hand has a new id, and is a new event. FastSpring tries until the answer is 200.

https://developer.fastspring.com/docs/message-security
"""

from hookonce.providers.kit import (
    Hmac,
    Sender,
    data_digest,
    field,
    first,
    fixed,
    many_events,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-fs-signature", encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign)
events = many_events(
    items="$.events",
    id=first(field("$.id"), data_digest()),
    type=first(field("$.type"), fixed("unknown")),
    occurred_at=field("$.created"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$.events[*].id"),
    check_secret=scheme.check_secret,
    setup_url="https://app.fastspring.com/integrations/webhooks.xml",
)
