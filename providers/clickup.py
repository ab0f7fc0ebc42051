"""ClickUp signs the body with HMAC-SHA256, in hex; the key is the secret that came with the new webhook.

A change has an id in `$.history_items`, which several events of one change share, so the event is part of the
id. What has no history (deletions, lists, folders, spaces, goals) says the same each time: it is known by its
fingerprint and the minute of receipt. There are five attempts.

https://developer.clickup.com/docs/webhooksignature
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
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

scheme = Hmac(header="x-signature")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=join(field("$.webhook_id"), field("$.event"), field("$.history_items[0].id")),
    undated=body_digest(),
    type=first(field("$.event"), fixed("unknown")),
    account=field("$.webhook_id"),
    occurred_at=field("$.history_items[0].date"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    disables_after="a hundred failures",
    identity=told_apart_by("$.webhook_id + $.event + $.history_items[*].id", "receipt"),
    id_period=timedelta(minutes=1),
    check_secret=scheme.check_secret,
    setup_url="https://developer.clickup.com/docs/webhooks",
)
