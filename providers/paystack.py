"""Paystack signs the body with HMAC-SHA512, in hex; the key is the API's secret key (`sk_live_…`).

There is no id of the event: it is made of the event and of what it is about, by its id or reference; what may happen
to one thing more than once (reminders of a dispute, an invoice, a subscription that ends again) is known by its
fingerprint and the time of receipt, four minutes more or less: the first retries come after three. They go on for
three days.

https://paystack.com/docs/payments/webhooks/
"""

from hookonce.providers import kit

_event = kit.field("$.event")
_ONCE = r"(?!subscription\.|invoice\.)(?:(?!\.remind$).)+"
events = kit.one_event(
    id=kit.first(
        kit.when_matches(_event, _ONCE, kit.join(_event, "$.data.id")),
        kit.when_matches(_event, _ONCE, kit.join(_event, "$.data.reference")),
    ),
    undated=kit.body_digest(),
    type=kit.or_unknown(_event),
    occurred_at=kit.first("$.data.paid_at", "$.data.created_at"),
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-paystack-signature", hash="sha512"),
    id_is_signed=True,
    retry_horizon=kit.days(4),
    identity=kit.told_apart_by("$.event + $.data.id", "$.event + $.data.reference", "receipt"),
    id_period=kit.minutes(4),
    mode=kit.mode("$.data.domain", live=("live",)),
    setup_url="https://dashboard.paystack.com/#/settings/developers",
)
