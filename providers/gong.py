"""Gong sends a token (JWT, RS256) in `Authorization`, which names our URL and the body's SHA-256, in hex.

The secret is the public key that the automation rule shows: base64, or PEM. `webhook_url` must be exactly the
URL that the rule has, so `public_url` must be right: the key alone does not say whose rule it is. Rules
without "signed JWT header" send nothing that could be checked. There is no id and no type: a call is sent
once for each rule, and a retry has the same body, whose hash is the id.

https://help.gong.io/docs/prepare-your-receiving-application-to-receive-a-webhook-jwt-header
"""

from datetime import timedelta

from providers.kit import body_digest, field, first, fixed, joined, one_event, signer
from providers.kit.jwt import Jwt

scheme = Jwt(
    algorithms=("RS256",),
    body_hash=("body_sha256", "hex"),
    url=("webhook_url", "plain"),
    needs=("exp",),
    leeway=timedelta(minutes=1),
)
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
_call = field("$.callData.metaData.id")
events = one_event(
    id=first(joined(_call, body_digest()), body_digest()),
    type=fixed("call"),
    account=field("$.callData.metaData.workspaceId"),
    occurred_at=field("$.callData.metaData.started"),
)
SIGNS_URL = True
SETUP = "https://app.gong.io/company/automation-rules"
