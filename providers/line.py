"""LINE signs the body with HMAC-SHA256, in base64; the key is the channel secret.

Deliveries are batches; the id of each event is `webhookEventId`, the same on a redelivery, where only
`deliveryContext.isRedelivery` differs. The account is `$.destination`, the bot. The console's Verify button
sends an empty batch, which is accepted like any other. Redelivery has to be switched on, and LINE does not say
how long it goes on.

https://developers.line.biz/en/docs/messaging-api/receiving-messages/
"""

from hookonce.providers import kit

events = kit.many_events(
    items="$.events",
    id="$.webhookEventId",
    type="$.type",
    account=kit.whole("$.destination"),
    occurred_at="$.timestamp",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-line-signature", encoding="base64"),
    id_is_signed=True,
    retry_horizon="the account switches it on, and LINE names no end",
    identity=kit.told_apart_by("$.events[*].webhookEventId"),
    volatile=("$.deliveryContext",),
    setup_url="https://developers.line.biz/console/",
)
