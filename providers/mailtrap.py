"""Mailtrap signs the body with HMAC-SHA256, in hex; the key is the webhook's signing secret.

Up to 500 events come as the list `$.events`, each with its `event_id`. The type is what happened to the mail
(`delivery`, `soft bounce`).

https://docs.mailtrap.io/email-api-smtp/advanced/webhooks
"""

from hookonce.providers.kit import (
    Hmac,
    Sender,
    data_digest,
    field,
    first,
    fixed,
    many_events,
    signer,
    told_apart_by,
)

scheme = Hmac(header="mailtrap-signature")
verify = scheme.verify
sign = signer(scheme.sign)
events = many_events(
    items="$.events",
    id=first(field("$.event_id"), data_digest()),
    type=first(field("$.event"), fixed("unknown")),
    account=first(field("$.sending_domain_name"), field("$.sending_domain_id")),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$.events[*].event_id"),
    check_secret=scheme.check_secret,
    setup_url="https://mailtrap.io/webhooks",
)
