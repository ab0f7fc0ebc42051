"""Klaviyo signs `<body><time>` with HMAC-SHA256, in hex: the body comes first.

These are system webhooks; the webhook action of a flow is not signed. The time is signed as it stands in
`Klaviyo-Timestamp`, and not checked, since Klaviyo may send an old one again. Deliveries are batches of up to
1000 events; the id is `external_id`, the event's own, the type the topic, the account Klaviyo's.

https://developers.klaviyo.com/en/docs/working_with_system_webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    data_digest,
    field,
    first,
    fixed,
    many_events,
    signer,
    told_apart_by,
    whole,
)

scheme = Hmac(
    header="klaviyo-signature",
    signed="{body}{timestamp}",
    timestamp=Timestamp(header="klaviyo-timestamp", unit="any", tolerance=None),
)
verify = scheme.verify
sign = signer(scheme.sign)
events = many_events(
    items="$.data",
    id=first(field("$.external_id"), field("$.payload.data.id"), data_digest()),
    type=first(field("$.topic"), fixed("unknown")),
    account=first(whole("$.meta.klaviyo_account_id"), whole("$.meta.klaviyo_webhook_id")),
    occurred_at=first(field("$.payload.data.attributes.datetime"), whole("$.meta.timestamp")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=told_apart_by("$.data[*].external_id"),
    check_secret=scheme.check_secret,
    setup_url="https://developers.klaviyo.com/en/docs/working_with_system_webhooks",
)
