"""Merge signs the body with HMAC-SHA256, in base64url without its padding; the key is the webhook's signature key.

`$.hook.id` is the webhook's, so there is no event id: an event is its body. Changed data carries `modified_at`, a
sync when it began and ended. The account is the linked account.

https://docs.merge.dev/merge-unified/reading-data/webhooks/merge-webhooks
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.body_digest(),
    type=kit.or_unknown("$.hook.event"),
    account="$.linked_account.id",
    occurred_at=kit.first("$.data.modified_at", "$.data.last_sync_finished"),
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-merge-webhook-signature", encoding="base64url"),
    id_is_signed=True,
    retry_horizon="it tries twice more and names no times",
    identity=kit.told_apart_by(
        "$.data.modified_at",
        "$.data.last_sync_finished",
        "$.data.last_sync_start",
        "body",
        because="what has no times of its own is linked, deleted or raised once",
    ),
    setup_url="https://app.merge.dev/configuration/webhooks",
)
