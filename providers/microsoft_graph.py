"""Microsoft Graph brings back the `clientState` that a subscription was made with, in every notification of a batch.

That is a shared token in the body (where it is stored too) and says nothing about the rest. The tokens of
notifications with content are not looked at, and their content stays encrypted. A notification without `id`
is known by its content. A new URL is probed with `validationToken` in the
query, which is sent back as plain text. Graph waits 3 s and tries for four hours.

https://learn.microsoft.com/en-us/graph/change-notifications-delivery-webhooks
"""

import hmac
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Unpack

from providers import Delivery, Reason, Rejected, Reply
from providers.kit import Said, View, data_digest, field, first, json_body, many_events, query
from providers.kit.in_body import said_in, sign
from providers.kit.keys import key_of, keys_of
from providers.kit.probing import echo

_TOKEN: Final = query("validationToken")
events = many_events(
    items="$.value",
    id=first(field("$.id"), data_digest("$.clientState")),
    type=first(field("$.changeType"), field("$.lifecycleEvent")),
    account=field("$.tenantId"),
)
MAX_BODY = 1 << 20  # it is parsed before it is known to be genuine
ID_IS_SIGNED = False
BODY_IS_UNSIGNED = True
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://learn.microsoft.com/en-us/graph/api/subscription-post-subscriptions"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:  # noqa: ARG001
    """Accept `delivery` if each notification brings back one of the states. Raises: Rejected."""
    keys = keys_of(secrets, "raw")
    data = json_body(delivery)
    found = data.get("value") if isinstance(data, dict) else None
    if not isinstance(found, list) or not found:
        raise Rejected(Reason.BAD_BODY, "the body has no list of notifications")
    states = {str(each.get("clientState")) if isinstance(each, dict) else "" for each in found}
    given = [state.encode("utf-8", "surrogatepass") for state in states]
    if not all(any([hmac.compare_digest(state, key) for key in keys]) for state in given):  # noqa: C419
        raise Rejected(Reason.BAD_SIGNATURE, "the clientState is none of the secrets of this source")


def CHECK(secret: str) -> None:  # noqa: N802  a declaration of the module
    """Raises: ValueError for a blank state."""
    key_of(secret, "raw")


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Send back the `validationToken`, as text that no browser takes for a page."""
    text = _TOKEN.get(View(delivery, None, None))
    return echo(text) if isinstance(text, str) and not delivery.body else None


def deliver(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> Delivery:
    """`body` with the state in every notification; of another body, one notification."""
    data = said_in(body)
    found = data.get("value") if isinstance(data, dict) else None
    found = found if isinstance(found, list) else [data]
    value = [{**each, "clientState": secret} for each in found if isinstance(each, dict)]
    made = json.dumps({"value": value or [{"clientState": secret}]}).encode()
    return Delivery("POST", said.get("url", ""), sign(body, secret, now), made)
