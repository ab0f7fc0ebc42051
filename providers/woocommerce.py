"""WooCommerce signs the body with HMAC-SHA256, in base64; the key is the webhook's secret.

`X-WC-Webhook-Delivery-ID`, outside of what is signed, is a hash of the webhook and the second, so all that a shop
sends in one second has the same (`get_new_delivery_id` in `class-wc-webhook.php`): the id is that and the body's
fingerprint. There are no retries, and after five failures the webhook is switched off. The type is the topic,
`order.created`, the account the shop's address. Saving a webhook sends an unsigned form `webhook_id=7`, which must
be answered with 200 or the hook can't be saved.

https://woocommerce.com/document/webhooks/
"""

import re
from collections.abc import Sequence

from hookonce.providers import Delivery, Reply, kit

scheme = kit.Hmac(header="x-wc-webhook-signature", encoding="base64")
sign = kit.signer(
    scheme.sign, event_id="x-wc-webhook-delivery-id", type="x-wc-webhook-topic", default_type="order.updated"
)
_delivery = kit.header("x-wc-webhook-delivery-id")
events = kit.one_event(
    id=kit.or_body(
        kit.when_matches(_delivery, "[0-9a-f]{32,}", kit.join(_delivery, kit.body_digest())), _delivery
    ),
    type=kit.or_unknown("header x-wc-webhook-topic"),
    account="header x-wc-webhook-source",
    occurred_at=kit.first("$.date_modified_gmt", "$.date_created_gmt"),
)
_PING = re.compile(rb"webhook_id=[0-9]{1,20}")


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Answer the ping that comes with saving; there is nothing in it to be stored. None for anything else."""
    signed = "x-wc-webhook-signature" in delivery.headers
    return Reply() if not signed and _PING.fullmatch(delivery.body.strip()) else None


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="what is deleted and restored twice, and a coupon that is changed back, may bring one body",
    retry_horizon=kit.hours(1),
    retries_on=(),
    disables_after="five failures in a row",
    identity=kit.told_apart_by("header x-wc-webhook-delivery-id"),
    setup_url="https://woocommerce.com/document/webhooks/",
)
