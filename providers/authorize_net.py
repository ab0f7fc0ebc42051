"""Authorize.Net signs the body with HMAC-SHA512, in upper-case hex behind `sha512=`.

The key is the Signature Key of the merchant's account, 128 hex digits, as text: so says a delivery of 2017 in
Authorize.Net's forum. Its help page wants the 64 bytes that the digits stand for, so they count as well. The
id is `$.notificationId`. There are ten retries within two days.

https://developer.authorize.net/api/reference/features/webhooks.html
"""

from collections.abc import Sequence
from datetime import datetime

from hookonce.providers import Delivery, Reason, Rejected, kit

scheme = kit.Hmac(header="x-anet-signature", hash="sha512", prefix="sha512=")
_decoded = kit.Hmac(header="x-anet-signature", hash="sha512", prefix="sha512=", secret="hex")
events = kit.one_event(
    id=kit.or_body("$.notificationId"),
    type=kit.or_unknown("$.eventType"),
    account="$.webhookId",
    occurred_at="$.eventDate",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed with the text or the bytes of a key. Raises: Rejected."""
    try:
        scheme.verify(delivery, secrets, now)
    except Rejected as error:
        if error.reason is not Reason.BAD_SIGNATURE:
            raise
        _decoded.verify(delivery, secrets, now)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by("$.notificationId"),
    check_secret=_decoded.check_secret,
    setup_url="https://account.authorize.net/",
)
