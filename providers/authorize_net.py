"""Authorize.Net signs the body with HMAC-SHA512, in upper-case hex behind `sha512=`.

The key is the Signature Key of the merchant's account, 128 hex digits, as text: so says a delivery of 2017 in
Authorize.Net's forum. Its help page wants the 64 bytes that the digits stand for, so they count as well. The
id is `$.notificationId`. There are ten retries within two days.

https://developer.authorize.net/api/reference/features/webhooks.html
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-anet-signature", hash="sha512", prefix="sha512=")
_decoded = Hmac(
    header="x-anet-signature",
    hash="sha512",
    prefix="sha512=",
    secret="hex",  # noqa: S106  a codec's name
)
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.notificationId"), body_digest()),
    type=first(field("$.eventType"), fixed("unknown")),
    account=field("$.webhookId"),
    occurred_at=field("$.eventDate"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if it is signed with the text or the bytes of a key. Raises: Rejected."""
    try:
        scheme.verify(delivery, secrets, now)
    except Rejected as error:
        if error.reason is not Reason.BAD_SIGNATURE:
            raise
        _decoded.verify(delivery, secrets, now)


sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=timedelta(days=3),
    identity=told_apart_by("$.notificationId"),
    check_secret=_decoded.check_secret,
    setup_url="https://account.authorize.net/",
)
