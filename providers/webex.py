"""Webex signs the body with HMAC-SHA1, in hex.

`$.id` is that of the webhook, not of the event: the event's is made of the resource, what happened, and the
resource's id, with the time of the change if it tells one. Webex does not try again, and switches a webhook off
after 100 failures in five minutes.

https://developer.webex.com/docs/webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, field, first, joined, one_event, signer

scheme = Hmac(header="x-spark-signature", hash="sha1")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
_key = (field("$.resource"), field("$.event"), field("$.data.id"))
events = one_event(
    id=first(joined(*_key, field("$.data.updated")), joined(*_key)),
    type=joined(*_key[:2], by="."),
    account=field("$.orgId"),
    occurred_at=first(field("$.data.updated"), field("$.data.created")),
)
RETRY_HORIZON = timedelta(hours=1)
SETUP = "https://developer.webex.com/docs/webhooks"
