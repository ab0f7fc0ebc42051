"""Smartsheet signs the body with HMAC-SHA256, in hex; the key is the webhook's shared secret.

A delivery says what was changed and not how: each element of `$.events` is an event, known by what it says, its time
in seconds included, and by the webhook. `nonce` is the delivery's own. A delivery without events says that the webhook
was switched off or on. The URL is probed when a webhook is enabled, and again every hundred deliveries, with a word in
`Smartsheet-Hook-Challenge` that goes back as header and as JSON to anybody who asks.

https://developers.smartsheet.com/api/smartsheet/guides/webhooks/webhook-callbacks
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hookonce.providers import Delivery, Reply, kit

_WORD: Final = re.compile(r"[A-Za-z0-9-]{1,200}")
_changes = kit.many_events(
    items="$.events",
    id=kit.digest(kit.whole("$.webhookId"), "$"),
    type=kit.or_unknown(kit.join("$.objectType", "$.eventType", by=".")),
    account=kit.whole("$.webhookId"),
    occurred_at="$.timestamp",
)
_status = kit.one_event(
    id=kit.body_digest("$.nonce"),
    type=kit.fixed("webhook.status"),
    account="$.webhookId",
    occurred_at="$.timestamp",
)
events = kit.one_of_two(
    _changes,
    _status,
    when=lambda delivery: not isinstance(kit.json_paths.find(kit.json_body(delivery), ("events",)), list),
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Give a challenge back that header and body agree on; None for anything else."""
    challenge = delivery.headers.get("smartsheet-hook-challenge", "")
    if _WORD.fullmatch(challenge) is None or kit.unsigned_probe(delivery).get("challenge") != challenge:
        return None
    reply = kit.json_reply({"smartsheetHookResponse": challenge})
    return replace(reply, headers={**reply.headers, "Smartsheet-Hook-Response": challenge})


def sample(event_id: str, kind: str) -> bytes:
    """Return a delivery of one event with this id and type."""
    changed, _, how = kind.partition(".")
    event = {"objectType": changed, "eventType": how or "updated", "id": event_id}
    return json.dumps({"webhookId": 1, "scope": "sheet", "events": [event]}).encode()


sender = kit.Sender(
    scheme=kit.Hmac(header="smartsheet-hmac-sha256"),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by(
        "$.events[*].timestamp + $.events[*].objectType", "$.timestamp", new_on_retry=("$.nonce",)
    ),
    volatile=("$.nonce",),
    max_body=5 << 20,  # what may be a probe is parsed before it is known to be genuine
    setup_url="https://developers.smartsheet.com/api/smartsheet/guides/webhooks",
)
