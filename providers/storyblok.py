"""Storyblok signs the body with HMAC-SHA1, in hex; the key is the webhook's secret.

There is neither an id nor a time: who publishes a story twice sends the same bytes twice. So the minute of receipt
is part of the id. Storyblok does not try again, and wants an answer of 2xx within two minutes.

https://www.storyblok.com/docs/concepts/webhooks
"""

from datetime import timedelta

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

scheme = Hmac(header="webhook-signature", hash="sha1")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=body_digest(),
    type=first(field("$.action"), fixed("unknown")),
    account=field("$.space_id"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by("receipt"),
    id_period=timedelta(minutes=1),
    check_secret=scheme.check_secret,
    setup_url="https://app.storyblok.com/",
)
