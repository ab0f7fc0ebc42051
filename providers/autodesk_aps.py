"""Autodesk Platform Services sign the body with HMAC-SHA1, in hex behind `sha1hash=`.

The id is `x-adsk-delivery-id`, which is not signed; without it a delivery is known by its fingerprint. The key
is the token that the application has set for its webhooks.

https://aps.autodesk.com/en/docs/webhooks/v1/developers_guide/basics/
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, header, one_event, signer

scheme = Hmac(header="x-adsk-signature", hash="sha1", prefix="sha1hash=")
verify, CHECK = scheme.verify, scheme.check_secret
sign = signer(scheme.sign, event_id="x-adsk-delivery-id")
events = one_event(
    id=first(header("x-adsk-delivery-id"), body_digest()),
    type=first(field("$.hook.event"), fixed("unknown")),
    account=field("$.hook.tenant"),
)
ID_IS_SIGNED = False
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://aps.autodesk.com/myapps/"
