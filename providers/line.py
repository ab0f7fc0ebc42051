"""LINE signs the body with HMAC-SHA256, in base64; the key is the channel secret.

Deliveries are batches; the id of each event is `webhookEventId`, the same on a redelivery, where only
`deliveryContext.isRedelivery` differs. The account is `$.destination`, the bot. The console's Verify button
sends an empty batch, which is accepted like any other. Redelivery has to be switched on, and LINE does not say
how long it goes on.

https://developers.line.biz/en/docs/messaging-api/receiving-messages/
"""

from hookonce.providers.kit import (
    Hmac,
    Sender,
    field,
    many_events,
    signer,
    told_apart_by,
    whole,
)

scheme = Hmac(header="x-line-signature", encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign)
events = many_events(
    items="$.events",
    id=field("$.webhookEventId"),
    type=field("$.type"),
    account=whole("$.destination"),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="the account switches it on, and LINE names no end",
    identity=told_apart_by("$.events[*].webhookEventId"),
    volatile=("$.deliveryContext",),
    check_secret=scheme.check_secret,
    setup_url="https://developers.line.biz/console/",
)
