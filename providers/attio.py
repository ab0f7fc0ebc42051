"""Attio signs the body with HMAC-SHA256, in hex.

Events come in batches and have no ids: their `id` is an object that names the record. So an event's id is made
of `Idempotency-Key`, the same for every attempt and not signed, and of the event's content. Retries go on for
three days.

https://docs.attio.com/rest-api/guides/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    digest,
    field,
    header,
    many_events,
    signer,
    told_apart_by,
    whole,
)

scheme = Hmac(header=("attio-signature", "x-attio-signature"))
verify = scheme.verify
sign = signer(scheme.sign, event_id="idempotency-key")
events = many_events(
    items="$.events",
    id=digest(header("idempotency-key"), field("$")),
    type=field("$.event_type"),
    account=whole("$.webhook_id"),
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=4),
    identity=told_apart_by(
        "header idempotency-key",
        "body",
        because="the older webhooks send no key; an event says what it is about and who did it",
    ),
    check_secret=scheme.check_secret,
    setup_url="https://build.attio.com/",
)
