"""monday.com sends a token (JWT, HS256) in `Authorization`, usually without `Bearer`; it says nothing about the body.

The secret is the app's signing secret (for lifecycle events its client secret). The token's `aud` must be our URL.
Webhooks of a board carry no token and prove nothing: theirs is taken where the URL ends with the secret. The id is
`$.event.triggerUuid`; for an integration's action it is the run's, `actionUuid`. Whether two subscriptions to one
change share an id is not said, so the subscription is part of it. Another attempt may say `isRetry`. The URL is
probed with a `challenge`, which comes unsigned and is sent back. monday tries every minute for half an hour.

https://developer.monday.com/api-reference/docs/webhooks
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from hookonce.providers import Delivery, Reply, kit

scheme = kit.Jwt(url=("aud", "plain"), needs=("exp",))
_trigger = kit.field("$.event.triggerUuid")
_VOLATILE: Final = ("$.event.isRetry",)
events = kit.one_event(
    id=kit.or_body(
        kit.join(_trigger, "$.event.subscriptionId"),
        _trigger,
        "$.runtimeMetadata.actionUuid",
        without=_VOLATILE,
    ),
    type=kit.or_unknown("$.event.type", "$.type", "$.payload.blockKind"),
    account=kit.first(kit.claim("accountId"), "$.event.boardId", "$.data.account_id"),
    occurred_at="$.event.triggerTime",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by its token, or without one by the end of its URL. Raises: Rejected."""
    is_boards = bool(delivery.path_secret) and scheme.header not in delivery.headers
    (kit.path_secret if is_boards else scheme).verify(delivery, secrets, now)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Send back a challenge, all that the body holds; None for anything else."""
    if b'"challenge"' not in delivery.body:
        return None
    probe = kit.unsigned_probe(delivery)
    return kit.same_challenge(probe.get("challenge") if len(probe) == 1 else None)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    body_is_unsigned=True,
    signs_url=True,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by("$.event.triggerUuid", "$.runtimeMetadata.actionUuid", "$.data.timestamp"),
    volatile=_VOLATILE,
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    setup_url="https://support.monday.com/hc/en-us/articles/360003540679-Webhook-Integration",
)
