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
from datetime import timedelta
from typing import Final

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    digest,
    field,
    first,
    fixed,
    join,
    json_body,
    json_paths,
    json_reply,
    many_events,
    one_event,
    one_of_two,
    signer,
    told_apart_by,
    unsigned_probe,
    whole,
)

_WORD: Final = re.compile(r"[A-Za-z0-9-]{1,200}")
scheme = Hmac(header="smartsheet-hmac-sha256")
verify = scheme.verify
sign = signer(scheme.sign)
_changes = many_events(
    items="$.events",
    id=digest(whole("$.webhookId"), field("$")),
    type=first(join(field("$.objectType"), field("$.eventType"), by="."), fixed("unknown")),
    account=whole("$.webhookId"),
    occurred_at=field("$.timestamp"),
)
_status = one_event(
    id=body_digest("$.nonce"),
    type=fixed("webhook.status"),
    account=field("$.webhookId"),
    occurred_at=field("$.timestamp"),
)
events = one_of_two(
    _changes,
    _status,
    when=lambda delivery: not isinstance(json_paths.find(json_body(delivery), ("events",)), list),
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Give a challenge back that header and body agree on; None for anything else."""
    challenge = delivery.headers.get("smartsheet-hook-challenge", "")
    if _WORD.fullmatch(challenge) is None or unsigned_probe(delivery).get("challenge") != challenge:
        return None
    reply = json_reply({"smartsheetHookResponse": challenge})
    return replace(reply, headers={**reply.headers, "Smartsheet-Hook-Response": challenge})


def sample(event_id: str, kind: str) -> bytes:
    """Return a delivery of one event with this id and type."""
    changed, _, how = kind.partition(".")
    event = {"objectType": changed, "eventType": how or "updated", "id": event_id}
    return json.dumps({"webhookId": 1, "scope": "sheet", "events": [event]}).encode()


sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by(
        "$.events[*].timestamp + $.events[*].objectType", "$.timestamp", new_on_retry=("$.nonce",)
    ),
    volatile=("$.nonce",),
    max_body=5 << 20,  # what may be a probe is parsed before it is known to be genuine
    check_secret=scheme.check_secret,
    handshake=handshake,
    sample=sample,
    setup_url="https://developers.smartsheet.com/api/smartsheet/guides/webhooks",
)
