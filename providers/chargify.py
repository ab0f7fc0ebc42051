"""Chargify (Maxio Advanced Billing) signs the body with HMAC-SHA256, in hex; the key is the site's shared key.

Bodies are forms with names like `payload[site][subdomain]`. The id is `$.id`, else
`X-Chargify-Webhook-Id`, which is not signed. An older header with an MD5 sum comes beside it and is never looked at.

https://docs.maxio.com/hc/en-us/articles/24266143173901-Webhooks
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="x-chargify-webhook-signature-hmac-sha-256")
sign = kit.signer(scheme.sign, event_id="x-chargify-webhook-id", content=kit.FORM)
_unsigned = kit.header("x-chargify-webhook-id")
events = kit.one_event(
    id=kit.or_body("$.id", _unsigned),
    type=kit.or_unknown("$.event"),
    account="$['payload[site][subdomain]']",
    read=kit.form_body,
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="what lacks an id is of an older form, of which no time is known",
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by("$.id", "header x-chargify-webhook-id"),
    setup_url="https://docs.maxio.com/hc/en-us/articles/24266143173901-Webhooks",
)
