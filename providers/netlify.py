"""Netlify puts a token (JWS, HS256) over the body's SHA-256 into `X-Webhook-Signature`.

The claims are `iss` (always `netlify`) and `sha256`, in hex; no time is signed. The secret is the "JWS secret
token" of the notification; one set up without it is not signed at all. There is no id: a deploy's id comes
with each of its states, so the two together are the event. A deploy that is locked or unlocked keeps its state;
then `X-Netlify-Event`, which is not signed, and the time are part of it. Netlify gives up after a few attempts.

https://docs.netlify.com/deploy/deploy-notifications/#payload-signature
"""

from hookonce.providers.kit import (
    Sender,
    body_digest,
    field,
    first,
    fixed,
    header,
    join,
    one_event,
    signer,
    told_apart_by,
    when_matches,
)
from hookonce.providers.kit.schemes.jwt import Jwt

scheme = Jwt(header="x-webhook-signature", issuers=("netlify",), body_hash=("sha256", "hex"))
verify = scheme.verify
sign = signer(scheme.sign)
_event = header("x-netlify-event")
events = one_event(
    id=first(
        when_matches(_event, "deploy_(un)?locked", join(field("$.id"), _event, field("$.updated_at"))),
        join(field("$.id"), field("$.state")),
        field("$.id"),
        body_digest(),
    ),
    type=first(when_matches(_event, "deploy_(un)?locked", _event), field("$.state"), fixed("notification")),
    account=field("$.site_id"),
    occurred_at=first(field("$.updated_at"), field("$.created_at")),
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=None,
    horizon_unknown="it gives up after a few attempts, and names no times",
    identity=told_apart_by("$.id + header x-netlify-event + $.updated_at", "$.id + $.state", "$.id"),
    check_secret=scheme.check_secret,
    setup_url="https://docs.netlify.com/deploy/deploy-notifications/",
)
