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

from hookonce.providers import kit

_event = kit.header("x-netlify-event")
_LOCKS: Final = "deploy_(un)?locked"
_OTHERS: Final = "(?!deploy_(?:building|created|failed)$|submission_created$).+"
"""Of these four a deploy has each once, and a form's submission is sent once."""
_known = kit.join("$.id", "$.state")
_locked = kit.when_matches(_event, _LOCKS, kit.join("$.id", _event, "$.updated_at"))
events = kit.one_event(
    id=kit.or_body(
        _locked,
        kit.when_matches(_event, _OTHERS, kit.join("$.id", _event, kit.body_digest())),
        kit.join(_known, "$.published_at"),
        _known,
        "$.id",
    ),
    type=kit.first(
        kit.when_matches(_event, _LOCKS, _event),
        "$.state",
        kit.when_matches(_event, "split_test_.+", _event),
        kit.fixed("notification"),
    ),
    account="$.site_id",
    occurred_at=kit.first("$.updated_at", "$.created_at"),
)
sender = kit.Sender(
    scheme=kit.Jwt(header="x-webhook-signature", issuers=("netlify",), body_hash=("sha256", "hex")),
    id_is_signed=False,
    runs_repeats="a deploy that is locked, unlocked and locked again brings one body",
    retry_horizon="it gives up after a few attempts, and names no times",
    identity=kit.told_apart_by("$.id + header x-netlify-event + $.updated_at", "$.id + $.state", "$.id"),
    setup_url="https://docs.netlify.com/deploy/deploy-notifications/",
)
