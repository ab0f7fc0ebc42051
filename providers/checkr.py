"""Checkr signs the body with HMAC-SHA256, in hex; the key is the API key, for a partner the client secret.

The id is `$.id`, that of the event. A webhook that has failed for 60 days is removed. Checkr can publish by Amazon
SNS instead: then it is a source of `amazon_sns`.

https://docs.checkr.com/apis/webhooks
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.id"), type=kit.or_unknown("$.type"), account="$.account_id", occurred_at="$.created_at"
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-checkr-signature"),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$.id", "body", because="every event of Checkr's has an id"),
    setup_url="https://dashboard.checkr.com/account/developer_settings",
)
