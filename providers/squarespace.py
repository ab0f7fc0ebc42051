"""Squarespace signs the body with HMAC-SHA256, in hex; the key is the subscription's secret, decoded from hex.

The id is `$.id`, the notification's, the type the topic, `order.create`, the account the website. Several
retries, after which the subscription is removed.

https://developers.squarespace.com/webhooks/overview
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.id"), type=kit.or_unknown("$.topic"), account="$.websiteId", occurred_at="$.createdOn"
)
sender = kit.Sender(
    scheme=kit.Hmac(header="squarespace-signature", secret="hex"),
    id_is_signed=True,
    retry_horizon=kit.days(3),
    disables_after="several failures",
    identity=kit.told_apart_by("$.id"),
    setup_url="https://developers.squarespace.com/webhooks/overview",
)
