"""PlanetScale signs the body with HMAC-SHA256, in hex; the key is the webhook's secret.

There is no id: an event is its body, with its time in seconds and the state of what it is about in `$.resource`.
The account is the organization.

https://planetscale.com/docs/api/webhooks
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.body_digest(), type=kit.or_unknown("$.event"), account="$.organization", occurred_at="$.timestamp"
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-planetscale-signature"),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by(
        "$.timestamp + $.event",
        "body",
        because="what is alike in its second and in all of its resource is one event",
    ),
    setup_url="https://app.planetscale.com/",
)
