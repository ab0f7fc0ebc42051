"""Attio signs the body with HMAC-SHA256, in hex.

Events come in batches and have no ids: their `id` is an object that names the record. So an event's id is made
of `Idempotency-Key`, the same for every attempt and not signed, and of the event's content. Retries go on for
three days.

https://docs.attio.com/rest-api/guides/webhooks
"""

from hookonce.providers import kit

scheme = kit.Hmac(header=("attio-signature", "x-attio-signature"))
sign = kit.signer(scheme.sign, event_id="idempotency-key")
events = kit.many_events(
    items="$.events",
    id=kit.digest("header idempotency-key", "$"),
    type="$.event_type",
    account=kit.whole("$.webhook_id"),
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="an event names a record and no time: a record that is changed twice is one body",
    retry_horizon=kit.days(4),
    identity=kit.told_apart_by(
        "header idempotency-key",
        "body",
        because="the older webhooks send no key; an event says what it is about and who did it",
    ),
    setup_url="https://build.attio.com/",
)
