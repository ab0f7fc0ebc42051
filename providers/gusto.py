"""Gusto signs the body with HMAC-SHA256, in hex; the key is the verification token of the subscription.

A new subscription is probed with that token, unsigned: it is the secret from then on, and has to be given back by
Gusto's API (`PUT /v1/webhook_subscriptions/{uuid}/verify`) before events are sent. Anyone who knows the URL can
send such a probe: the first token is kept, and counts only where none is configured. The id is `$.uuid`. There are
up to 16 retries.

https://docs.gusto.com/embedded-payroll/docs/webhooks
"""

import re
from collections.abc import Sequence
from typing import Final

from hookonce.providers import Delivery, Reply, kit

events = kit.one_event(
    id=kit.or_body("$.uuid"),
    type=kit.or_unknown("$.event_type"),
    account="$.resource_uuid",
    occurred_at="$.timestamp",
)

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{16,128}")


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Say the token that was handed out, unless it is known; None for anything else."""
    if "x-gusto-signature" in delivery.headers or b"verification_token" not in delivery.body:
        return None
    said = kit.unsigned_probe(delivery)
    token = said.get("verification_token")
    if "event_type" in said or not isinstance(token, str) or not _TOKEN.fullmatch(token):
        return None
    return Reply(secret=None if token in secrets else token)


sender = kit.Sender(
    scheme=kit.Hmac(header="x-gusto-signature"),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.uuid", "$.timestamp", "body", because="every event says when it happened"),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    setup_url="https://docs.gusto.com/embedded-payroll/docs/webhooks",
)
