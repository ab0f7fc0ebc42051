"""Asana signs the body with HMAC-SHA256, in hex, with a secret that it hands out when a webhook is made.

That first request has `X-Hook-Secret` and no signature; the same header in the answer accepts it, and the
value is the webhook's secret from then on. Anyone who knows the URL can send such a request: the first one is
kept, and counts only where none is configured. Each webhook has its own: configure all of a source's.
Events come in batches and have no ids: their own is made of who did what to what, and when. An empty batch is
a heartbeat, sent every eight hours; two failures in a row and a day later the webhook is gone.

https://developers.asana.com/docs/webhooks-guide
"""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    Hmac,
    Sender,
    digest,
    field,
    first,
    join,
    many_events,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-hook-signature")
verify = scheme.verify
sign = signer(scheme.sign)
_event = (
    field("$.user.gid"),
    field("$.created_at"),
    field("$.action"),
    field("$.resource.gid"),
    field("$.parent.gid"),
    field("$.change"),
)
events = many_events(
    items="$.events",
    id=digest(*_event, field("$.resource.resource_type")),
    former=(digest(*_event),),
    type=first(join(field("$.resource.resource_type"), field("$.action"), by="."), field("$.action")),
    occurred_at=field("$.created_at"),
)

_SECRET: Final = re.compile(r"[A-Za-z0-9_-]{16,128}")


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Give a handed-out secret back, and say it unless it is known; None for anything else."""
    given = delivery.headers.get("x-hook-secret", "")
    if delivery.method != "POST" or "x-hook-signature" in delivery.headers or not _SECRET.fullmatch(given):
        return None
    return Reply(headers={"X-Hook-Secret": given}, secret=None if given in secrets else given)


sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=2),
    disables_after="a day of failures",
    identity=told_apart_by("$.events[*].created_at + $.events[*].resource.gid + $.events[*].action"),
    check_secret=scheme.check_secret,
    handshake=handshake,
    setup_url="https://developers.asana.com/reference/createwebhook",
)
