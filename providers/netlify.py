"""Netlify puts a token (JWS, HS256) over the body's SHA-256 into `X-Webhook-Signature`.

The claims are `iss` (always `netlify`) and `sha256`, in hex; no time is signed. The secret is the "JWS secret
token" of the notification; one set up without it is not signed at all. There is no id: a deploy's id comes
with each of its states, so the two together are the event. Netlify gives up after a few attempts.

https://docs.netlify.com/deploy/deploy-notifications/#payload-signature
"""

from providers.kit import field, first, fixed, joined, one_event, signer
from providers.kit.jwt import Jwt

scheme = Jwt(header="x-webhook-signature", issuers=("netlify",), body_hash=("sha256", "hex"))
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(joined(field("$.id"), field("$.state")), field("$.id")),
    type=first(field("$.state"), fixed("notification")),
    account=field("$.site_id"),
    occurred_at=first(field("$.updated_at"), field("$.created_at")),
)
SETUP = "https://docs.netlify.com/deploy/deploy-notifications/"
