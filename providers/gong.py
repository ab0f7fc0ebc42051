"""Gong sends a token (JWT, RS256) in `Authorization`, which names our URL and the body's SHA-256, in hex.

The secret is the public key that the automation rule shows: base64, or PEM. `webhook_url` must be exactly the
URL that the rule has, so `public_url` must be right: the key alone does not say whose rule it is. Rules
without "signed JWT header" send nothing that could be checked. There is no id and no type: a call is sent
once for each rule, and a retry has the same body, whose hash is the id.

https://help.gong.io/docs/prepare-your-receiving-application-to-receive-a-webhook-jwt-header
"""

from hookonce.providers import kit

_call = kit.field("$.callData.metaData.id")
events = kit.one_event(
    id=kit.or_body(kit.join(_call, kit.body_digest())),
    type=kit.fixed("call"),
    account="$.callData.metaData.workspaceId",
    occurred_at="$.callData.metaData.started",
)
sender = kit.Sender(
    scheme=kit.Jwt(
        prefix="Bearer ",
        algorithms=("RS256",),
        body_hash=("body_sha256", "hex"),
        url=("webhook_url", "plain"),
        needs=("exp",),
        leeway=kit.minutes(1),
    ),
    id_is_signed=True,
    signs_url=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.callData.metaData.id", "body", because="a rule sends a call once"),
    mode=kit.mode("$.isTest", live=(False,)),
    setup_url="https://app.gong.io/company/automation-rules",
)
