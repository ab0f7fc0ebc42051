"""BigCommerce follows Standard Webhooks: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The key is the client secret of the API account that made the hook, its text as it is and not decoded. The id
is the header `webhook-id`, the type `$.scope` (`store/order/created`). The body is thin. Retries go on for two
days; hooks of before the signatures came unsigned, make them anew.

https://developer.bigcommerce.com/docs/integrations/webhooks
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("webhook",), secret="raw")
events = kit.one_event(
    id=scheme.id,
    type=kit.or_unknown("$.scope"),
    account=kit.first("$.store_id", "$.producer"),
    occurred_at="$.created_at",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    disables_after="success below 90 % within two minutes: the domain is left out for three",
    subject=kit.about(entity=("$.data.type", "$.data.id"), version="$.created_at", unit="s"),
    setup_url="https://developer.bigcommerce.com/docs/integrations/webhooks",
)
