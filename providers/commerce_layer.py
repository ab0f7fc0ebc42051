"""Commerce Layer signs the body with HMAC-SHA256, in base64; the key is the shared secret of the webhook.

The body is the resource as its API has it, without an event id, and what happened to it is only in the header of
the topic, which is not signed: `orders.place` and `orders.authorize` may bring the same order in the same bytes. So
the id is the topic with the body. An answer is awaited for 5 seconds, and there are up to ten retries; after 30
failures in a row the webhook is switched off.

https://docs.commercelayer.io/core/callbacks-security
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    header,
    join,
    one_event,
    signer,
    told_apart_by,
)

_TOPIC = "x-commercelayer-topic"
scheme = Hmac(header="x-commercelayer-signature", encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign, type=_TOPIC, default_type="orders.place")
events = one_event(
    id=first(join(header(_TOPIC), body_digest()), body_digest()),
    type=first(header(_TOPIC), field("$.data.type"), fixed("unknown")),
    account=field("$.data.meta.organization_id"),
    occurred_at=field("$.data.attributes.updated_at"),
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=2),
    identity=told_apart_by(
        f"header {_TOPIC} + $.data.attributes.updated_at",
        f"header {_TOPIC} + $.data.id",
        "body",
        because="what has no topic was not sent by a webhook",
    ),
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.commercelayer.io/",
)
