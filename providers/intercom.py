"""Intercom signs the body with HMAC-SHA1, in hex behind `sha1=`; the key is the app's client secret.

The id is `$.id` (`notif_…`), the same on the one retry after a minute; `$.delivery_attempts` counts. The URL is
asked by HEAD when it is saved. A test sends the topic `ping`, which is an event like others. A reply of 410
ends the subscription, so no error of ours has that code.

https://developers.intercom.com/docs/webhooks/setting-up-webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    answer_head,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-hub-signature", hash="sha1", prefix="sha1=")
verify = scheme.verify
sign = signer(scheme.sign)
_VOLATILE = ("$.delivery_attempts", "$.delivery_status", "$.delivered_at")
events = one_event(
    id=first(field("$.id"), body_digest(*_VOLATILE)),
    type=first(field("$.topic"), fixed("unknown")),
    account=field("$.app_id"),
    occurred_at=field("$.created_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    disables_after="failures in a row, or a 410",
    identity=told_apart_by("$.id", "$.created_at", new_on_retry=("$.delivery_attempts",)),
    volatile=_VOLATILE,
    check_secret=scheme.check_secret,
    handshake=answer_head,
    setup_url="https://app.intercom.com/a/apps/_/developer-hub",
)
