"""Brex sends by Svix under unbranded names: `<id>.<timestamp>.<body>`, HMAC-SHA256 in base64.

The secret is base64 without the `whsec_` in front; either spelling is taken. While a secret is rolled the API
lists several: configure all of them. The id is the header `webhook-id`.

https://developer.brex.com/docs/webhooks/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    UNSUCCESSFUL,
    Sender,
    StandardWebhooks,
    field,
    first,
    fixed,
    one_event,
    signer,
)

scheme = StandardWebhooks(vendors=("webhook", "svix"))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.event_type"), field("$.type"), fixed("unknown")),
    account=field("$.company_id"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    retries_on=UNSUCCESSFUL,
    disables_after="five days of failures",
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://developer.brex.com/docs/webhooks/",
)
