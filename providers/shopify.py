"""Shopify signs the body with HMAC-SHA256, in base64; the key is the app's client secret, as text.

The id is `X-Shopify-Webhook-Id`: one per subscription and event, the same on every retry, and not covered by the
signature. `X-Shopify-Event-Id` is shared by all subscriptions that one action fired, so it would swallow events. A
test of an old API version has neither, and is known by its body; a webhook set to XML is taken as text. The new
"Events" send the same headers without `X-`. After a rotation the old secret may sign for an hour. Webhooks made in
the shop's admin are signed with the shop's own key. Shopify waits 5 s and retries 8 times in 4 hours.

https://shopify.dev/docs/apps/build/webhooks/verify-deliveries
"""

from datetime import timedelta

from hookonce.providers.kit import (
    UNSUCCESSFUL,
    Hmac,
    Sender,
    any_body,
    body_digest,
    first,
    header,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header=("x-shopify-hmac-sha256", "shopify-hmac-sha256"), encoding="base64")
verify = scheme.verify
sign = signer(
    scheme.sign, event_id="x-shopify-webhook-id", type="x-shopify-topic", default_type="orders/create"
)
events = one_event(
    id=first(header("x-shopify-webhook-id", "shopify-webhook-id"), body_digest()),
    type=header("x-shopify-topic", "shopify-topic"),
    account=header("x-shopify-shop-domain", "shopify-shop-domain"),
    occurred_at=header("x-shopify-triggered-at", "shopify-triggered-at"),
    read=any_body,
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(hours=48),
    retries_on=UNSUCCESSFUL,
    disables_after="eight retries of one delivery that failed: the subscription is removed",
    identity=told_apart_by("header x-shopify-webhook-id", "header shopify-webhook-id"),
    check_secret=scheme.check_secret,
    setup_url="https://shopify.dev/docs/apps/build/webhooks/subscribe",
)
