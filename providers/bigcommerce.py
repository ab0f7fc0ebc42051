"""BigCommerce follows Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The key is the client secret of the API account that made the hook, its text as it is and not decoded. The id
is the header `webhook-id`, the type `$.scope` (`store/order/created`). The body is thin. Retries go on for two
days; hooks of before the signatures came unsigned, make them anew.

https://developer.bigcommerce.com/docs/integrations/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, StandardWebhooks, field, first, fixed, one_event, signer

scheme = StandardWebhooks(vendors=("webhook",), secret="raw")  # noqa: S106  a codec's name
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.scope"), fixed("unknown")),
    account=first(field("$.store_id"), field("$.producer")),
    occurred_at=field("$.created_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    disables_after="success below 90 % within two minutes: the domain is left out for three",
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://developer.bigcommerce.com/docs/integrations/webhooks",
)
