"""Persona signs `<t>.<body>` with HMAC-SHA256, in hex: `Persona-Signature: t=…,v1=…`.

While secrets are rotated there are two such groups, separated by a space, each with a time of its own; one that
is right will do. The id is `$.data.id`, the event's, the type `$.data.attributes.name`. Seven retries in about
two days.

https://docs.withpersona.com/webhooks-best-practices
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from hookonce.providers import Delivery, Rejected, kit

_HEADER = "persona-signature"
scheme = kit.Hmac(header=_HEADER, key="v1", signed="{timestamp}.{body}", timestamp=kit.Timestamp(key="t"))
_MAX_GROUPS: Final = 4
"""As many as are looked at: one for each secret in use, and each costs a pass over the body."""
events = kit.one_event(
    id=kit.or_body("$.data.id"),
    type=kit.or_unknown("$.data.attributes.name"),
    account="$.data.attributes.payload.data.relationships.account.data.id",
    occurred_at="$.data.attributes.created-at",
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


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by("$.data.id"),
    setup_url="https://app.withpersona.com/dashboard/webhooks",
)
