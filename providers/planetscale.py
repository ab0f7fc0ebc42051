"""PlanetScale signs the body with HMAC-SHA256, in hex; the key is the webhook's secret.

There is no id: an event is its body, with its time in seconds and the state of what it is about in `$.resource`.
The account is the organization.

https://planetscale.com/docs/api/webhooks
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

scheme = Hmac(header="x-planetscale-signature")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=body_digest(),
    type=first(field("$.event"), fixed("unknown")),
    account=field("$.organization"),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by(
        "$.timestamp + $.event",
        "body",
        because="what is alike in its second and in all of its resource is one event",
    ),
    check_secret=scheme.check_secret,
    setup_url="https://app.planetscale.com/",
)
