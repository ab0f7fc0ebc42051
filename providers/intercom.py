"""Intercom signs the body with HMAC-SHA1, in hex behind `sha1=`; the key is the app's client secret.

The id is `$.id` (`notif_…`), the same on the one retry after a minute; `$.delivery_attempts` counts the attempts. The
URL is asked by HEAD when it is saved. A test sends the topic `ping`, which is an event like others. A reply of 410
ends the subscription, so no error of ours has that code.

https://developers.intercom.com/docs/webhooks/setting-up-webhooks
"""

from hookonce.providers import kit

_VOLATILE = ("$.delivery_attempts", "$.delivery_status", "$.delivered_at")
events = kit.one_event(
    id=kit.or_body("$.id", without=_VOLATILE),
    type=kit.or_unknown("$.topic"),
    account="$.app_id",
    occurred_at="$.created_at",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-hub-signature", hash="sha1", prefix="sha1="),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    disables_after="failures in a row, or a 410",
    identity=kit.told_apart_by("$.id", "$.created_at", new_on_retry=("$.delivery_attempts",)),
    volatile=_VOLATILE,
    handshake=kit.answer_head,
    subject=kit.about(entity=("$.data.item.type", "$.data.item.id"), version="$.created_at", unit="s"),
    setup_url="https://app.intercom.com/a/apps/_/developer-hub",
)
