"""Commerce Layer signs the body with HMAC-SHA256, in base64; the key is the shared secret of the webhook.

The body is the resource as its API has it, without an event id, and what happened to it is only in the header of
the topic, which is not signed: `orders.place` and `orders.authorize` may bring the same order in the same bytes. So
the id is the topic with the body. An answer is awaited for 5 seconds, and there are up to ten retries; after 30
failures in a row the webhook is switched off.

https://docs.commercelayer.io/core/callbacks-security
"""

from hookonce.providers import kit

_TOPIC = "x-commercelayer-topic"
scheme = kit.Hmac(header="x-commercelayer-signature", encoding="base64")
sign = kit.signer(scheme.sign, type=_TOPIC, default_type="orders.place")
events = kit.one_event(
    id=kit.or_body(kit.join(kit.header(_TOPIC), kit.body_digest())),
    type=kit.or_unknown(kit.header(_TOPIC), "$.data.type"),
    account="$.data.meta.organization_id",
    occurred_at="$.data.attributes.updated_at",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="a topic that fires twice for an order that did not change in between brings one body",
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by(
        f"header {_TOPIC} + $.data.attributes.updated_at",
        f"header {_TOPIC} + $.data.id",
        "body",
        because="what has no topic was not sent by a webhook",
    ),
    mode=kit.mode("$.data.meta.mode", live=("live",)),
    setup_url="https://dashboard.commercelayer.io/",
)
