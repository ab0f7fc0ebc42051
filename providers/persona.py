"""Persona signs `<t>.<body>` with HMAC-SHA256, in hex: `Persona-Signature: t=…,v1=…`.

While secrets are rotated there are two such groups, separated by a space, each with a time of its own; one that
is right will do. The id is `$.data.id`, the event's, the type `$.data.attributes.name`. Seven retries in about
two days.

https://docs.withpersona.com/webhooks-best-practices
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from providers import Delivery, Rejected
from providers.kit import Hmac, Timestamp, body_digest, field, first, fixed, one_event, signer
from providers.kit.signing import SIGNATURES

_HEADER = "persona-signature"
scheme = Hmac(header=_HEADER, key="v1", signed="{timestamp}.{body}", timestamp=Timestamp(key="t"))
sign, CHECK, TOLERANCE = signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=first(field("$.data.id"), body_digest()),
    type=first(field("$.data.attributes.name"), fixed("unknown")),
    account=field("$.data.attributes.payload.data.relationships.account.data.id"),
    occurred_at=field("$.data.attributes.created-at"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://app.withpersona.com/dashboard/webhooks"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` if one of the groups in its header is right. Raises: Rejected, for the last group."""
    groups = re.split(" +(?=t=)", delivery.headers.get(_HEADER, ""))[:SIGNATURES]
    for group in groups[:-1]:
        try:
            scheme.verify(replace(delivery, headers={**delivery.headers, _HEADER: group}), secrets, now)
        except Rejected:
            continue
        return
    if len(groups) > 1:
        delivery = replace(delivery, headers={**delivery.headers, _HEADER: groups[-1]})
    scheme.verify(delivery, secrets, now)
