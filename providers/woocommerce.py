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
from datetime import timedelta

from providers import Delivery, Reply
from providers.kit import Hmac, body_digest, field, first, fixed, header, joined, one_event, signer
from providers.kit.fields import only_if

scheme = Hmac(header="x-wc-webhook-signature", encoding="base64")
verify, CHECK = scheme.verify, scheme.check_secret
sign = signer(
    scheme.sign, event_id="x-wc-webhook-delivery-id", type="x-wc-webhook-topic", default_type="order.updated"
)
_delivery = header("x-wc-webhook-delivery-id")
events = one_event(
    id=first(only_if(_delivery, "[0-9a-f]{32,}", joined(_delivery, body_digest())), _delivery, body_digest()),
    type=first(header("x-wc-webhook-topic"), fixed("unknown")),
    account=header("x-wc-webhook-source"),
    occurred_at=first(field("$.date_modified_gmt"), field("$.date_created_gmt")),
)
ID_IS_SIGNED = False
RETRY_HORIZON = timedelta(hours=1)
SETUP = "https://woocommerce.com/document/webhooks/"
_PING = re.compile(rb"webhook_id=[0-9]{1,20}")


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Answer the ping that comes with saving; there is nothing in it to be stored. None for anything else."""
    signed = "x-wc-webhook-signature" in delivery.headers
    return Reply() if not signed and _PING.fullmatch(delivery.body.strip()) else None
