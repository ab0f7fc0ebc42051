"""MailerLite signs the body with HMAC-SHA256, in hex, in `Signature`.

There are no ids: an event is known by its fingerprint. A webhook may be set to batches; each of its `events` is
one here. The type is `$.type`, or `$.event` of the older API. Three tries; MailerLite waits for three seconds.

https://developers.mailerlite.com/docs/webhooks.html
"""

from datetime import timedelta

from providers.kit import Hmac, cut, data_digest, field, first, fixed, signer, split_events

scheme = Hmac(header="signature")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
_one = "$.events[0]"
events = split_events(
    pieces=lambda data: cut(data, ("events", None)),
    id=data_digest(),
    type=first(
        field("$.type"), field("$.event"), field(f"{_one}.type"), field(f"{_one}.event"), fixed("unknown")
    ),
    account=first(field("$.account_id"), field(f"{_one}.account_id")),
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://dashboard.mailerlite.com/integrations/webhooks"
