"""Stream (GetStream: chat, feeds, video) signs the body with HMAC-SHA256, in hex; the key is the app's API secret.

The id is `X-Webhook-Id`, the same on every attempt and not signed, the type `$.type`, the account the app's key.
Compressed webhooks must stay off, as they are unless the app turns them on: what is signed is the text within,
and bodies with a Content-Encoding are refused before anything is checked. What comes by SQS or SNS is not taken.

https://getstream.io/chat/docs/python/webhooks_overview/
"""

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-signature")
verify = scheme.verify
sign = signer(scheme.sign, event_id="x-webhook-id")
events = one_event(
    id=first(header("x-webhook-id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    account=header("x-api-key"),
    occurred_at=field("$.created_at"),
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by(
        "header x-webhook-id",
        "$.created_at",
        new_on_retry=("header x-webhook-attempt",),
    ),
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.getstream.io",
)
