"""Klaviyo signs `<body><time>` with HMAC-SHA256, in hex: the body comes first.

These are system webhooks; the webhook action of a flow is not signed. The time is signed as it stands in
`Klaviyo-Timestamp`, and not checked, since Klaviyo may send an old one again. Deliveries are batches of up to
1000 events; the id is `external_id`, the event's own, the type the topic, the account Klaviyo's.

https://developers.klaviyo.com/en/docs/working_with_system_webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, Timestamp, data_digest, field, first, fixed, many_events, signer, whole

scheme = Hmac(
    header="klaviyo-signature",
    signed="{body}{timestamp}",
    timestamp=Timestamp(header="klaviyo-timestamp", unit="any", tolerance=None),
)
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = many_events(
    items="$.data",
    id=first(field("$.external_id"), field("$.payload.data.id"), data_digest()),
    type=first(field("$.topic"), fixed("unknown")),
    account=first(whole("$.meta.klaviyo_account_id"), whole("$.meta.klaviyo_webhook_id")),
    occurred_at=first(field("$.payload.data.attributes.datetime"), whole("$.meta.timestamp")),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://developers.klaviyo.com/en/docs/working_with_system_webhooks"
