"""Klaviyo signs `<body><time>` with HMAC-SHA256, in hex: the body comes first.

These are system webhooks; the webhook action of a flow is not signed. The time is signed as it stands in
`Klaviyo-Timestamp`, and not checked, since Klaviyo may send an old one again. Deliveries are batches of up to
1000 events; the id is `external_id`, the event's own, the type the topic, the account Klaviyo's.

https://developers.klaviyo.com/en/docs/working_with_system_webhooks
"""

from hookonce.providers import kit

events = kit.many_events(
    items="$.data",
    id=kit.first("$.external_id", "$.payload.data.id", kit.data_digest()),
    type=kit.or_unknown("$.topic"),
    account=kit.first(kit.whole("$.meta.klaviyo_account_id"), kit.whole("$.meta.klaviyo_webhook_id")),
    occurred_at=kit.first("$.payload.data.attributes.datetime", kit.whole("$.meta.timestamp")),
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header="klaviyo-signature",
        signed="{body}{timestamp}",
        timestamp=kit.Timestamp(header="klaviyo-timestamp", unit="any", tolerance=None),
    ),
    id_is_signed=True,
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by("$.data[*].external_id"),
    setup_url="https://developers.klaviyo.com/en/docs/working_with_system_webhooks",
)
