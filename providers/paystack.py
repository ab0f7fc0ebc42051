"""Paystack signs the body with HMAC-SHA512, in hex; the key is the API's secret key (`sk_live_…`).

There is no id of the event: it is made of the event and of what it is about, by its id or reference; what may happen
to one thing more than once (reminders of a dispute, an invoice, a subscription that ends again) is known by its
fingerprint and the time of receipt, four minutes more or less: the first retries come after three. They go on for
three days.

https://paystack.com/docs/payments/webhooks/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
    when_matches,
)

scheme = Hmac(header="x-paystack-signature", hash="sha512")
verify = scheme.verify
sign = signer(scheme.sign)
_event = field("$.event")
_ONCE = r"(?!subscription\.|invoice\.)(?:(?!\.remind$).)+"
events = one_event(
    id=first(
        when_matches(_event, _ONCE, join(_event, field("$.data.id"))),
        when_matches(_event, _ONCE, join(_event, field("$.data.reference"))),
    ),
    undated=body_digest(),
    former=(when_matches(_event, r"invoice\..+", join(_event, field("$.data.id"))),),
    type=first(_event, fixed("unknown")),
    occurred_at=first(field("$.data.paid_at"), field("$.data.created_at")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=4),
    identity=told_apart_by("$.event + $.data.id", "$.event + $.data.reference", "receipt"),
    id_period=timedelta(minutes=4),
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.paystack.com/#/settings/developers",
)
