"""Circle signs the body with ECDSA (P-256, SHA-256), in base64 (DER); of Wallets, Contracts, CPN, Gateway, StableFX.

The secret is the public key that `X-Circle-Key-Id` names, as Circle's API gives it (`/v2/notifications/publicKey/<id>`,
for CPN and StableFX under a path of their own): base64, which never changes for an id. Asking for it takes an API key,
so it is not fetched; name several while Circle has several. The id is `$.notificationId`, the same on every attempt.
What Circle Mint sends comes by Amazon SNS (`amazon_sns`). CPN tries eleven times more, for 36 hours
(https://developers.circle.com/cpn/references/webhook-retries); of the others no page says how long.

https://developers.circle.com/api-reference/verify-webhook-signatures
"""

from hookonce.providers import kit

events = kit.one_event(
    id="$.notificationId", type="$.notificationType", account="$.subscriptionId", occurred_at="$.timestamp"
)
sender = kit.Sender(
    scheme=kit.Signed(header="x-circle-signature", algorithm="ecdsa-sha256"),
    id_is_signed=True,
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by("$.notificationId"),
    setup_url="https://console.circle.com/",
)
