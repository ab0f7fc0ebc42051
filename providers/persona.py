"""Persona signs `<t>.<body>` with HMAC-SHA256, in hex: `Persona-Signature: t=…,v1=…`.

While secrets are rotated there are two such groups, separated by a space, each with a time of its own; one that
is right will do. The id is `$.data.id`, the event's, the type `$.data.attributes.name`. Seven retries in about
two days.

https://docs.withpersona.com/webhooks-best-practices
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

_HEADER = "persona-signature"
scheme = Hmac(header=_HEADER, key="v1", signed="{timestamp}.{body}", timestamp=Timestamp(key="t"))
_MAX_GROUPS: Final = 4
"""As many as are looked at: one for each secret in use, and each costs a pass over the body."""
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.data.id"), body_digest()),
    type=first(field("$.data.attributes.name"), fixed("unknown")),
    account=field("$.data.attributes.payload.data.relationships.account.data.id"),
    occurred_at=field("$.data.attributes.created-at"),
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if one of the groups in its header is right. Raises: Rejected, for the last group."""
    first, *more = delivery.headers.get(_HEADER, "").split(" t=", _MAX_GROUPS)[:_MAX_GROUPS]
    groups = [first, *(f"t={each}" for each in more)]
    for group in groups[:-1]:
        try:
            scheme.verify(replace(delivery, headers={**delivery.headers, _HEADER: group}), secrets, now)
        except Rejected:
            continue
        return
    if len(groups) > 1:
        delivery = replace(delivery, headers={**delivery.headers, _HEADER: groups[-1]})
    scheme.verify(delivery, secrets, now)


sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=timedelta(days=3),
    identity=told_apart_by("$.data.id"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://app.withpersona.com/dashboard/webhooks",
)
