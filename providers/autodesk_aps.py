"""Autodesk Platform Services sign the body with HMAC-SHA1, in hex behind `sha1hash=`.

The id is `x-adsk-delivery-id`, which is not signed; without it a delivery is known by its fingerprint. The key
is the token that the application has set for its webhooks.

https://aps.autodesk.com/en/docs/webhooks/v1/developers_guide/basics/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-adsk-signature", hash="sha1", prefix="sha1hash=")
verify = scheme.verify
sign = signer(scheme.sign, event_id="x-adsk-delivery-id")
events = one_event(
    id=first(header("x-adsk-delivery-id"), body_digest()),
    type=first(field("$.hook.event"), fixed("unknown")),
    account=field("$.hook.tenant"),
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=3),
    identity=told_apart_by("header x-adsk-delivery-id"),
    check_secret=scheme.check_secret,
    setup_url="https://aps.autodesk.com/myapps/",
)
