"""monday.com sends a token (JWT, HS256) in `Authorization`, usually without `Bearer`; it says nothing about the body.

The secret is the app's signing secret (for lifecycle events its client secret). The token's `aud` must be our
URL. Webhooks that are not an app's carry no token and are refused. The id is `$.event.triggerUuid`, of an
integration's action that of its run. The URL is probed with a `challenge`, which comes unsigned and is sent back.
monday tries every minute for half an hour.

https://developer.monday.com/api-reference/docs/webhooks
"""

from collections.abc import Sequence
from datetime import timedelta

from providers import Delivery, Rejected, Reply
from providers.kit import body_digest, field, first, fixed, json_body, one_event, signer
from providers.kit.jwt import Jwt, claim
from providers.kit.probing import same_challenge

scheme = Jwt(url=("aud", "plain"), needs=("exp",))
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=first(field("$.event.triggerUuid"), field("$.runtimeMetadata.actionUuid"), body_digest()),
    type=first(field("$.event.type"), field("$.type"), field("$.payload.blockKind"), fixed("unknown")),
    account=first(claim("accountId"), field("$.event.boardId"), field("$.data.account_id")),
    occurred_at=field("$.event.triggerTime"),
)
ID_IS_SIGNED = False
BODY_IS_UNSIGNED = True
MAX_BODY = 1 << 20  # it is parsed before it is known to be genuine
RETRY_HORIZON = timedelta(hours=1)
SIGNS_URL = True
SETUP = "https://support.monday.com/hc/en-us/articles/360003540679-Webhook-Integration"


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Send back a challenge, all that the body holds; None for anything else."""
    if b'"challenge"' not in delivery.body:
        return None
    try:
        probe = json_body(delivery)
    except Rejected:
        return None
    challenge = probe.get("challenge") if isinstance(probe, dict) and len(probe) == 1 else None
    return same_challenge(challenge)
