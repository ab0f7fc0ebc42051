"""Attio signs the body with HMAC-SHA256, in hex.

Events come in batches and have no ids: their `id` is an object that names the record. So an event's id is made
of `Idempotency-Key`, the same for every attempt and not signed, and of the event's content. Retries go on for
three days.

https://docs.attio.com/rest-api/guides/webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, digest, field, header, many_events, signer, whole

scheme = Hmac(header=("attio-signature", "x-attio-signature"))
verify, CHECK = scheme.verify, scheme.check_secret
sign = signer(scheme.sign, event_id="idempotency-key")
events = many_events(
    items="$.events",
    id=digest(header("idempotency-key"), field("$")),
    type=field("$.event_type"),
    account=whole("$.webhook_id"),
)
ID_IS_SIGNED = False
RETRY_HORIZON = timedelta(days=4)
SETUP = "https://build.attio.com/"
