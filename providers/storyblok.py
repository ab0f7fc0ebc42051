"""Storyblok signs the body with HMAC-SHA1, in hex; the key is the webhook's secret.

There is neither an id nor a time: a story that is published twice sends the same bytes twice. So the minute of
receipt is part of the id. Storyblok does not try again, and wants an answer of 2xx within two minutes.

https://www.storyblok.com/docs/concepts/webhooks
"""

from hookonce.providers import kit

events = kit.one_event(id=kit.body_digest(), type=kit.or_unknown("$.action"), account="$.space_id")
sender = kit.Sender(
    scheme=kit.Hmac(header="webhook-signature", hash="sha1"),
    id_is_signed=True,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by("receipt"),
    id_period=kit.minutes(1),
    setup_url="https://app.storyblok.com/",
)
