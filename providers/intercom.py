"""Intercom signs the body with HMAC-SHA1, in hex behind `sha1=`; the key is the app's client secret.

The id is `$.id` (`notif_…`), the same on the one retry after a minute; `$.delivery_attempts` counts. The URL is
asked by HEAD when it is saved. A test sends the topic `ping`, which is an event like others. A reply of 410
ends the subscription, so no error of ours has that code.

https://developers.intercom.com/docs/webhooks/setting-up-webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer
from providers.kit.probing import answer_head

scheme = Hmac(header="x-hub-signature", hash="sha1", prefix="sha1=")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
VOLATILE = ("$.delivery_attempts", "$.delivery_status", "$.delivered_at")
events = one_event(
    id=first(field("$.id"), body_digest(*VOLATILE)),
    type=first(field("$.topic"), fixed("unknown")),
    account=field("$.app_id"),
    occurred_at=field("$.created_at"),
)
handshake = answer_head
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://app.intercom.com/a/apps/_/developer-hub"
