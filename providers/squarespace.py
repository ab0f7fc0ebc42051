"""Squarespace signs the body with HMAC-SHA256, in hex; the key is the subscription's secret, decoded from hex.

The id is `$.id`, the notification's, the type the topic, `order.create`, the account the website. Several
retries, after which the subscription is removed.

https://developers.squarespace.com/webhooks/overview
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

scheme = Hmac(header="squarespace-signature", secret="hex")  # noqa: S106  a codec's name
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.topic"), fixed("unknown")),
    account=field("$.websiteId"),
    occurred_at=field("$.createdOn"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    disables_after="several failures",
    identity=told_apart_by("$.id"),
    check_secret=scheme.check_secret,
    setup_url="https://developers.squarespace.com/webhooks/overview",
)
