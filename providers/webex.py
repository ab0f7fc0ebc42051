"""Webex signs the body with HMAC-SHA1, in hex.

`$.id` is that of the webhook, not of the event: the event's is made of the resource, what happened, and the
resource's id, with the time of the change if it tells one; a change without (of a room, say) is known by its
fingerprint. Webex does not try again, and switches a webhook off
after 100 failures in five minutes.

https://developer.webex.com/docs/webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, joined, one_event, signer
from providers.kit.fields import only_if

scheme = Hmac(header="x-spark-signature", hash="sha1")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
_resource, _event = field("$.resource"), field("$.event")
_key = (_resource, _event, field("$.data.id"))
events = one_event(
    id=first(
        joined(*_key, field("$.data.updated")),
        only_if(_event, "updated", body_digest()),
        joined(*_key),
        body_digest(),
    ),
    type=first(joined(_resource, _event, by="."), _event, fixed("unknown")),
    account=field("$.orgId"),
    occurred_at=first(field("$.data.updated"), field("$.data.created")),
)
RETRY_HORIZON = timedelta(hours=1)
SETUP = "https://developer.webex.com/docs/webhooks"
