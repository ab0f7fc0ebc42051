"""Modern Treasury signs the body with HMAC-SHA256, in hex, in `X-Signature`.

The id is `X-Webhook-ID`, the account `X-Organization-ID`; both are outside of what is signed. The type is the
topic and the event, `payment_order.created`. Eight retries in about three days.

https://docs.moderntreasury.com/platform/reference/webhooks
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

scheme = Hmac(header="x-signature")
verify = scheme.verify
sign = signer(scheme.sign, event_id="x-webhook-id", type="x-topic")
_topic = first(header("x-topic"), field("$.data.object"))
events = one_event(
    id=first(header("x-webhook-id"), body_digest()),
    type=first(join(_topic, field("$.event"), by="."), _topic, fixed("unknown")),
    account=header("x-organization-id"),
    occurred_at=first(field("$.data.updated_at"), field("$.data.created_at")),
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=3),
    identity=told_apart_by(
        "header x-webhook-id",
        "body",
        because="every delivery has the header; a body without it tells when its object was changed",
    ),
    check_secret=scheme.check_secret,
    setup_url="https://app.moderntreasury.com/developers/webhooks",
)
