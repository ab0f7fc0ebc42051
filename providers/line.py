"""LINE signs the body with HMAC-SHA256, in base64; the key is the channel secret.

Deliveries are batches; the id of each event is `webhookEventId`, the same on a redelivery, where only
`deliveryContext.isRedelivery` differs. The account is `$.destination`, the bot. The console's Verify button
sends an empty batch, which is accepted like any other. Redelivery has to be switched on, and LINE does not say
how long it goes on.

https://developers.line.biz/en/docs/messaging-api/receiving-messages/
"""

from providers.kit import Hmac, field, many_events, signer, whole

scheme = Hmac(header="x-line-signature", encoding="base64")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = many_events(
    items="$.events",
    id=field("$.webhookEventId"),
    type=field("$.type"),
    account=whole("$.destination"),
    occurred_at=field("$.timestamp"),
)
VOLATILE = ("$.deliveryContext",)
SETUP = "https://developers.line.biz/console/"
