"""Chargify (Maxio Advanced Billing) signs the body with HMAC-SHA256, in hex; the key is the site's shared key.

Bodies are forms with names like `payload[site][subdomain]`. The id is `X-Chargify-Webhook-Id`, which is not
signed. An older header with an MD5 sum comes beside it and is never looked at.

https://docs.maxio.com/hc/en-us/articles/24266143173901-Webhooks
"""

from datetime import timedelta

from providers.kit import FORM, Hmac, body_digest, field, first, fixed, form_body, header, one_event, signer

scheme = Hmac(header="x-chargify-webhook-signature-hmac-sha-256")
verify, CHECK = scheme.verify, scheme.check_secret
sign = signer(scheme.sign, event_id="x-chargify-webhook-id", content=FORM)
events = one_event(
    id=first(header("x-chargify-webhook-id"), field("$.id"), body_digest()),
    type=first(field("$.event"), fixed("unknown")),
    account=field("$['payload[site][subdomain]']"),
    read=form_body,
)
ID_IS_SIGNED = False
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://docs.maxio.com/hc/en-us/articles/24266143173901-Webhooks"
