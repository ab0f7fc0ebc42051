"""Brex sends by Svix under unbranded names: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The secret is base64 without the `whsec_` in front; either spelling is taken. While a secret is rolled the API
lists several: configure all of them. The id is the header `webhook-id`.

https://developer.brex.com/docs/webhooks/
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("webhook", "svix"))
events = kit.one_event(id=scheme.id, type=kit.or_unknown("$.event_type", "$.type"), account="$.company_id")
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    retries_on=kit.UNSUCCESSFUL,
    disables_after="five days of failures",
    setup_url="https://developer.brex.com/docs/webhooks/",
)
