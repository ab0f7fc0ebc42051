"""BigCommerce follows Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The key is the client secret of the API account that made the hook, its text as it is and not decoded. The id
is the header `webhook-id`, the type `$.scope` (`store/order/created`). The body is thin. Retries go on for two
days; hooks of before the signatures came unsigned, make them anew.

https://developer.bigcommerce.com/docs/integrations/webhooks
"""

from datetime import timedelta

from providers.kit import StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook",), secret="raw")  # noqa: S106  a codec's name
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=scheme.id,
    type=first(field("$.scope"), fixed("unknown")),
    account=first(field("$.store_id"), field("$.producer")),
    occurred_at=field("$.created_at"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://developer.bigcommerce.com/docs/integrations/webhooks"
