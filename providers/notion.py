"""Notion signs the body with HMAC-SHA256, hex behind `sha256=`; the key is the verification token as text.

Notion hands the token out itself: a POST that holds nothing but `verification_token`, not signed, or with the token.
It goes back into Notion's page (`hookonce sources secrets list --show`), and into the configuration; anyone who can
reach the URL can send such a thing, so the receiver keeps the first one only, and uses it only where none is
configured. The id is `$.id`; `$.attempt_number` counts up to 8 attempts in 24 hours.

https://developers.notion.com/reference/webhooks
"""

import re
from collections.abc import Sequence

from hookonce.providers import Delivery, Rejected, Reply, kit

scheme = kit.Hmac(header="x-notion-signature", prefix="sha256=")
_VOLATILE = ("$.attempt_number",)
events = kit.one_event(
    id=kit.or_body("$.id", without=_VOLATILE),
    type=kit.or_unknown("$.type"),
    account=kit.first("$.workspace_id", "$.subscription_id"),
    occurred_at="$.timestamp",
)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{8,200}")


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Accept the token that Notion hands out, and say it unless it is known; None for anything else."""
    if b"verification_token" not in delivery.body:
        return None
    probe = kit.unsigned_probe(delivery)
    token = probe.get("verification_token") if len(probe) == 1 else None
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        return None
    if "x-notion-signature" in delivery.headers and not _signed(delivery, token):
        return None
    return Reply(secret=None if token in secrets else token)


def _signed(delivery: Delivery, token: str) -> bool:
    try:
        scheme.authentic(delivery, [token])
    except Rejected:
        return False
    return True


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.id"),
    volatile=_VOLATILE,
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    subject=kit.about(entity=("$.entity.type", "$.entity.id"), version="$.timestamp"),
    setup_url="https://www.notion.so/profile/integrations",
)
