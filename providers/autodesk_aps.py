"""Autodesk Platform Services sign the body with HMAC-SHA1, in hex behind `sha1hash=`.

The id is `x-adsk-delivery-id`, which is not signed; without it a delivery is known by its fingerprint. The key
is the token that the application has set for its webhooks.

https://aps.autodesk.com/en/docs/webhooks/v1/developers_guide/basics/
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="x-adsk-signature", hash="sha1", prefix="sha1hash=")
sign = kit.signer(scheme.sign, event_id="x-adsk-delivery-id")
events = kit.one_event(
    id=kit.or_body("header x-adsk-delivery-id"), type=kit.or_unknown("$.hook.event"), account="$.hook.tenant"
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="the payload is a resource as its service tells it, and some tell no time",
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by("header x-adsk-delivery-id"),
    setup_url="https://aps.autodesk.com/myapps/",
)
