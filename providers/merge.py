"""Merge signs the body with HMAC-SHA256, in base64url without its padding; the key is the webhook's signature key.

`$.hook.id` is the webhook's, so there is no event id: an event is its body. Changed data carries `modified_at`, a
sync when it began and ended. The account is the linked account.

https://docs.merge.dev/merge-unified/reading-data/webhooks/merge-webhooks
"""

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-merge-webhook-signature", encoding="base64url")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=body_digest(),
    type=first(field("$.hook.event"), fixed("unknown")),
    account=field("$.linked_account.id"),
    occurred_at=first(field("$.data.modified_at"), field("$.data.last_sync_finished")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="it tries twice more and names no times",
    identity=told_apart_by(
        "$.data.modified_at",
        "$.data.last_sync_finished",
        "$.data.last_sync_start",
        "body",
        because="what has no times of its own is linked, deleted or raised once",
    ),
    check_secret=scheme.check_secret,
    setup_url="https://app.merge.dev/configuration/webhooks",
)
