"""ClickUp signs the body with HMAC-SHA256, in hex; the key is the secret that came with the new webhook.

A change has an id in `$.history_items`, which several events of one change share, so the event is part of the
id. What has no history (deletions, lists, folders, spaces, goals) says the same each time: it is known by its
fingerprint and the minute of receipt. There are five attempts.

https://developer.clickup.com/docs/webhooksignature
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.join("$.webhook_id", "$.event", "$.history_items[0].id"),
    undated=kit.body_digest(),
    type=kit.or_unknown("$.event"),
    account="$.webhook_id",
    occurred_at="$.history_items[0].date",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-signature"),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    disables_after="a hundred failures",
    identity=kit.told_apart_by("$.webhook_id + $.event + $.history_items[*].id", "receipt"),
    id_period=kit.minutes(1),
    setup_url="https://developer.clickup.com/docs/webhooks",
)
