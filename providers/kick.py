"""Kick signs `<message id>.<time>.<body>` with its RSA key (PKCS#1 v1.5, SHA-256), in base64.

The secret is Kick's public key: https://api.kick.com/public/v1/public-key. All of Kick's apps share that key, and the
signature names no app and no URL: the genuine delivery of another app is genuine here as well. So act only on
broadcasters and subscriptions that you know (`event.account` is the broadcaster). The id is `Kick-Event-Message-Id`,
signed and the same on every attempt; the type is `Kick-Event-Type`, unsigned (claims of drops may come without, as
`unknown`). Kick does not say whether a message that is sent again gets a new time, so only what is older than its
attempts could be is stale; the signed id makes it a duplicate until then.

https://docs.kick.com/events/webhook-security
"""

from hookonce.providers import kit

scheme = kit.Signed(
    header="kick-event-signature",
    algorithm="rsa-sha256",
    signed="{header:kick-event-message-id}.{timestamp}.{body}",
    timestamp=kit.Timestamp(header="kick-event-message-timestamp", unit="iso", tolerance=kit.days(1)),
)
sign = kit.signer(
    scheme.sign, event_id="kick-event-message-id", type="kick-event-type", default_type="channel.followed"
)
events = kit.one_event(
    id="header kick-event-message-id",
    type=kit.or_unknown("header kick-event-type"),
    account=kit.first("$.broadcaster.user_id", "header kick-event-subscription-id"),
    occurred_at="header kick-event-message-timestamp",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("header kick-event-message-id"),
    setup_url="https://kick.com/settings/developer",
)
