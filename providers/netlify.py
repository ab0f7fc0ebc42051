"""Netlify puts a token (JWS, HS256) over the body's SHA-256 into `X-Webhook-Signature`.

The claims are `iss` (always `netlify`) and `sha256`, in hex; no time is signed. The secret is the "JWS secret token"
of the notification; one set up without it is not signed at all. There is no id: a deploy's id comes with each of its
states, so the two together are the event, with when it was published, since one that is published again is `ready`
again. What else becomes of a deploy (it is locked, restored, deleted, succeeds after one that failed) leaves its
state as it is, and a split test has none: then `X-Netlify-Event`, which is not signed, and what is told are the
event. Netlify gives up after a few attempts.

https://docs.netlify.com/deploy/deploy-notifications/#payload-signature
"""

from typing import Final

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
_LOCKS: Final = "deploy_(un)?locked"
_OTHERS: Final = "(?!deploy_(?:building|created|failed)$|submission_created$).+"
"""Of these four a deploy has each once, and a form's submission is sent once."""
_known = join(field("$.id"), field("$.state"))
_locked = when_matches(_event, _LOCKS, join(field("$.id"), _event, field("$.updated_at")))
events = one_event(
    id=first(
        _locked,
        when_matches(_event, _OTHERS, join(field("$.id"), _event, body_digest())),
        join(_known, field("$.published_at")),
        _known,
        field("$.id"),
        body_digest(),
    ),
    former=(first(_locked, _known, field("$.id")),),
    type=first(
        when_matches(_event, _LOCKS, _event),
        field("$.state"),
        when_matches(_event, "split_test_.+", _event),
        fixed("notification"),
    ),
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
