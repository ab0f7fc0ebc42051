"""Chargify (Maxio Advanced Billing) signs the body with HMAC-SHA256, in hex; the key is the site's shared key.

Bodies are forms with names like `payload[site][subdomain]`. The id is `$.id`, else
`X-Chargify-Webhook-Id`, which is not signed. An older header with an MD5 sum comes beside it and is never looked at.

https://docs.maxio.com/hc/en-us/articles/24266143173901-Webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    FORM,
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    form_body,
    header,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-chargify-webhook-signature-hmac-sha-256")
verify = scheme.verify
sign = signer(scheme.sign, event_id="x-chargify-webhook-id", content=FORM)
_unsigned = header("x-chargify-webhook-id")
events = one_event(
    id=first(field("$.id"), _unsigned, body_digest()),
    former=(_unsigned,),
    type=first(field("$.event"), fixed("unknown")),
    account=field("$['payload[site][subdomain]']"),
    read=form_body,
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=3),
    identity=told_apart_by("$.id", "header x-chargify-webhook-id"),
    check_secret=scheme.check_secret,
    setup_url="https://docs.maxio.com/hc/en-us/articles/24266143173901-Webhooks",
)
