"""Checkr signs the body with HMAC-SHA256, in hex; the key is the API key, of a partner the client secret.

The id is `$.id`, that of the event. A webhook that has failed for 60 days is removed. Checkr can publish by Amazon
SNS instead: then it is a source of `amazon_sns`.

https://docs.checkr.com/apis/webhooks
"""

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

scheme = Hmac(header="x-checkr-signature")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.account_id"),
    occurred_at=field("$.created_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$.id", "body", because="every event of Checkr's has an id"),
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.checkr.com/account/developer_settings",
)
