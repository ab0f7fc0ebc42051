"""Netlify puts a token (JWS, HS256) over the body's SHA-256 into `X-Webhook-Signature`.

The claims are `iss` (always `netlify`) and `sha256`, in hex; no time is signed. The secret is the "JWS secret
token" of the notification; one set up without it is not signed at all. There is no id: a deploy's id comes
with each of its states, so the two together are the event. A deploy that is locked or unlocked keeps its state;
then `X-Netlify-Event`, which is not signed, and the time are part of it. Netlify gives up after a few attempts.

https://docs.netlify.com/deploy/deploy-notifications/#payload-signature
"""

from providers.kit import body_digest, field, first, fixed, header, joined, one_event, signer
from providers.kit.fields import only_if
from providers.kit.jwt import Jwt

scheme = Jwt(header="x-webhook-signature", issuers=("netlify",), body_hash=("sha256", "hex"))
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
_event = header("x-netlify-event")
events = one_event(
    id=first(
        only_if(_event, "deploy_(un)?locked", joined(field("$.id"), _event, field("$.updated_at"))),
        joined(field("$.id"), field("$.state")),
        field("$.id"),
        body_digest(),
    ),
    type=first(only_if(_event, "deploy_(un)?locked", _event), field("$.state"), fixed("notification")),
    account=field("$.site_id"),
    occurred_at=first(field("$.updated_at"), field("$.created_at")),
)
ID_IS_SIGNED = False
SETUP = "https://docs.netlify.com/deploy/deploy-notifications/"
