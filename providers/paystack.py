"""Paystack signs the body with HMAC-SHA512, in hex; the key is the API's secret key (`sk_live_…`).

There is no id of the event: it is made of the event and of what it is about, by its id or reference; what may
happen to one thing more than once (reminders of a dispute, a subscription that ends again) is known by its
fingerprint. Retries go
on for three days.

https://paystack.com/docs/payments/webhooks/
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, joined, one_event, signer
from providers.kit.fields import only_if

scheme = Hmac(header="x-paystack-signature", hash="sha512")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
_event = field("$.event")
events = one_event(
    id=first(
        only_if(_event, r"subscription\..+|.+\.remind", body_digest()),
        joined(_event, field("$.data.id")),
        joined(_event, field("$.data.reference")),
        body_digest(),
    ),
    type=first(_event, fixed("unknown")),
    occurred_at=first(field("$.data.paid_at"), field("$.data.created_at")),
)
RETRY_HORIZON = timedelta(days=4)
SETUP = "https://dashboard.paystack.com/#/settings/developers"
