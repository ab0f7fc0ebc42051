"""Stream (GetStream: chat, feeds, video) signs the body with HMAC-SHA256, in hex; the key is the app's API secret.

The id is `X-Webhook-Id`, the same on every attempt and not signed, the type `$.type`, the account the app's key.
Where the app turns compression on, the text within is signed. What comes by SQS or SNS is not taken.

https://getstream.io/chat/docs/python/webhooks_overview/
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="x-signature")
sign = kit.signer(scheme.sign, event_id="x-webhook-id")
events = kit.one_event(
    id=kit.or_body("header x-webhook-id"),
    type=kit.or_unknown("$.type"),
    account="header x-api-key",
    occurred_at="$.created_at",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    signs_text=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by(
        "header x-webhook-id", "$.created_at", new_on_retry=("header x-webhook-attempt",)
    ),
    holds_repeats="`$.created_at` is the moment of the event, to the microsecond",
    setup_url="https://dashboard.getstream.io",
)
