"""Gong sends a token (JWT, RS256) in `Authorization`, which names our URL and the body's SHA-256, in hex.

The secret is the public key that the automation rule shows: base64, or PEM. `webhook_url` must be exactly the
URL that the rule has, so `public_url` must be right: the key alone does not say whose rule it is. Rules
without "signed JWT header" send nothing that could be checked. There is no id and no type: a call is sent
once for each rule, and a retry has the same body, whose hash is the id.

https://help.gong.io/docs/prepare-your-receiving-application-to-receive-a-webhook-jwt-header
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
)
from hookonce.providers.kit.schemes.jwt import Jwt

scheme = Jwt(
    algorithms=("RS256",),
    body_hash=("body_sha256", "hex"),
    url=("webhook_url", "plain"),
    needs=("exp",),
    leeway=timedelta(minutes=1),
)
verify = scheme.verify
sign = signer(scheme.sign)
_call = field("$.callData.metaData.id")
events = one_event(
    id=first(join(_call, body_digest()), body_digest()),
    type=fixed("call"),
    account=field("$.callData.metaData.workspaceId"),
    occurred_at=field("$.callData.metaData.started"),
)

sender = Sender(
    id_is_signed=True,
    signs_url=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$.callData.metaData.id", "body", because="a rule sends a call once"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://app.gong.io/company/automation-rules",
)
