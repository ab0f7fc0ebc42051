"""Modern Treasury signs the body with HMAC-SHA256, in hex, in `X-Signature`.

The id is `X-Webhook-ID`, the account `X-Organization-ID`; both are outside of what is signed. The type is the
topic and the event, `payment_order.created`. Eight retries in about three days.

https://docs.moderntreasury.com/platform/reference/webhooks
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="x-signature")
sign = kit.signer(scheme.sign, event_id="x-webhook-id", type="x-topic")
_topic = kit.first("header x-topic", "$.data.object")
events = kit.one_event(
    id=kit.or_body("header x-webhook-id"),
    type=kit.or_unknown(kit.join(_topic, "$.event", by="."), _topic),
    account="header x-organization-id",
    occurred_at=kit.first("$.data.updated_at", "$.data.created_at"),
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    holds_repeats="a body names its event and the moment at which its object was changed",
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by(
        "header x-webhook-id",
        "body",
        because="every delivery has the header; a body without it tells when its object was changed",
    ),
    mode=kit.mode("$.data.live_mode", live=(True,)),
    setup_url="https://app.moderntreasury.com/developers/webhooks",
)
