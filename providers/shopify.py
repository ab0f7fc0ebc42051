"""Shopify signs the body with HMAC-SHA256, in base64; the key is the app's client secret, as text.

The id is `X-Shopify-Webhook-Id`: one per subscription and event, the same on every retry, and not covered by the
signature. `X-Shopify-Event-Id` is shared by all subscriptions that one action fired, so it would swallow events. A
test of an old API version has neither, and is known by its body; a webhook set to XML is taken as text. The new
"Events" send the same headers without `X-`. After a rotation the old secret may sign for an hour. Webhooks made in
the shop's admin are signed with the shop's own key. Shopify waits 5 s and retries 8 times in 4 hours.

https://shopify.dev/docs/apps/build/webhooks/verify-deliveries
"""

from hookonce.providers import kit

scheme = kit.Hmac(header=("x-shopify-hmac-sha256", "shopify-hmac-sha256"), encoding="base64")
sign = kit.signer(
    scheme.sign, event_id="x-shopify-webhook-id", type="x-shopify-topic", default_type="orders/create"
)
events = kit.one_event(
    id=kit.or_body(kit.header("x-shopify-webhook-id", "shopify-webhook-id")),
    type=kit.header("x-shopify-topic", "shopify-topic"),
    account=kit.header("x-shopify-shop-domain", "shopify-shop-domain"),
    occurred_at=kit.header("x-shopify-triggered-at", "shopify-triggered-at"),
    read=kit.any_body,
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats=(
        "several subscriptions bring one body each, and what is deleted twice (a cart, a redaction) is told by its "
        "id alone"
    ),
    retry_horizon=kit.hours(48),
    retries_on=kit.UNSUCCESSFUL,
    disables_after="eight retries of one delivery that failed: the subscription is removed",
    identity=kit.told_apart_by("header x-shopify-webhook-id", "header shopify-webhook-id"),
    subject=kit.about(entity=("$.admin_graphql_api_id",), version="$.updated_at"),
    setup_url="https://shopify.dev/docs/apps/build/webhooks/subscribe",
)
