"""Microsoft Graph brings back the `clientState` that a subscription was made with, in every notification of a batch.

That is a shared token in the body (where it is stored too) and says nothing about the rest. The tokens of
notifications with content are not looked at, and their content stays encrypted. A notification without `id`
(of OneDrive, or on the life of a subscription) says the same each time: it is known by its content and the minute of
receipt. A new URL is probed with `validationToken` in the
query, which is sent back as plain text. Graph waits 3 s and tries for four hours.

Subscriptions end within days and are renewed by PATCH, which answers 404 for one that is gone. The API is proven to
with an app's `appId`, `password` and `tenant`, as `az ad sp create-for-rbac` prints them, or with a token as it is.

https://learn.microsoft.com/en-us/graph/change-notifications-delivery-webhooks
https://learn.microsoft.com/en-us/graph/api/subscription-update
"""

import hmac
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, Unpack
from urllib.parse import urlencode

from hookonce.providers import Delivery, Reason, Rejected, Reply, kit

sign = kit.signature_in_body.sign

_TOKEN: Final = kit.query("validationToken")
events = kit.many_events(
    items="$.value",
    id="$.id",
    undated=kit.data_digest("$.clientState"),
    type=kit.first("$.changeType", "$.lifecycleEvent"),
    account="$.tenantId",
)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:  # noqa: ARG001
    """Accept `delivery` if each notification brings back one of the states. Raises: Rejected."""
    keys = kit.keys_of(secrets, "raw")
    data = kit.json_body(delivery)
    found = data.get("value") if isinstance(data, dict) else None
    if not isinstance(found, list) or not found:
        raise Rejected(Reason.BAD_BODY, "the body has no list of notifications")
    if len(found) > kit.MAX_EVENTS:
        raise Rejected(
            Reason.TOO_LARGE, f"{len(found)} notifications in one delivery, {kit.MAX_EVENTS} are taken"
        )
    states = kit.read_once(delivery, "states", lambda _: _states(found))
    given = [state.encode("utf-8", "surrogatepass") for state in islice(states, kit.MAX_SIGNATURES)]
    known = all(any([hmac.compare_digest(state, key) for key in keys]) for state in given)  # noqa: C419
    if not known or len(states) > kit.MAX_SIGNATURES:
        raise Rejected(Reason.BAD_SIGNATURE, "the clientState is none of the secrets of this source")


def _states(found: list[Any]) -> set[str]:
    return {kit.json_paths.find_text(each, "clientState") for each in found}


def check_secret(secret: str) -> None:
    """Raises: ValueError for a blank state."""
    kit.key_of(secret, "raw")


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:  # noqa: ARG001
    """Send back the `validationToken`, as text that no browser takes for a page."""
    text = _TOKEN.get(kit.EventView(delivery, None, None))
    return kit.echo(text) if isinstance(text, str) and not delivery.body else None


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:
    """`body` with the state in every notification; of another body, one notification."""
    data = kit.json_or_empty(body)
    found = data.get("value") if isinstance(data, dict) else None
    found = found if isinstance(found, list) else [data]
    value = [{**each, "clientState": secret} for each in found if isinstance(each, dict)]
    made = json.dumps({"value": value or [{"clientState": secret}]}).encode()
    return Delivery("POST", options.get("url", ""), sign(body, secret, now), made)


_SUBSCRIPTIONS: Final = "https://graph.microsoft.com/v1.0/subscriptions"


def _token(key: str, now: datetime) -> str | kit.calls.Request:  # noqa: ARG001
    if not key.startswith("{"):
        return key
    app = kit.calls.key_document(key, "appId", "password", "tenant")
    asked = {
        "client_id": app["appId"],
        "client_secret": app["password"],
        "grant_type": "client_credentials",
        "scope": "https://graph.microsoft.com/.default",
    }
    return kit.calls.Request(
        "POST",
        f"https://login.microsoftonline.com/{app['tenant']}/oauth2/v2.0/token",
        {"content-type": "application/x-www-form-urlencoded"},
        urlencode(asked).encode(),
    )


def _make(wanted: kit.calls.Wanted, name: str, token: str, now: datetime) -> kit.calls.Request:  # noqa: ARG001
    asked = {
        "changeType": wanted.changes,
        "notificationUrl": wanted.url,
        "resource": wanted.resource,
        "expirationDateTime": _until(wanted, now),
        "clientState": wanted.secret,
    }
    return kit.calls.post_json(_SUBSCRIPTIONS, asked, token)


def _renew(
    wanted: kit.calls.Wanted, known: kit.calls.Subscription, token: str, now: datetime
) -> kit.calls.Request:
    asked = {"expirationDateTime": _until(wanted, now)}
    return kit.calls.post_json(f"{_SUBSCRIPTIONS}/{known.id}", asked, token, "PATCH")


def _until(wanted: kit.calls.Wanted, now: datetime) -> str:
    return f"{(now + wanted.lasts).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def _subscription(answer: kit.calls.Answer) -> kit.calls.Subscription:
    found = kit.calls.document(answer)
    ends = kit.calls.moment(found.get("expirationDateTime"))
    return kit.calls.Subscription(kit.calls.text_at(found, "id", r"[\w-]{1,100}"), ends)


renewal = kit.calls.Renewal(
    token=_token,
    read_token=kit.calls.access_token,
    make=_make,
    read=_subscription,
    renew=_renew,
    hosts=("graph.microsoft.com", "login.microsoftonline.com"),
    resource=r"[^\s]{1,2000}",
    lasts=kit.days(2),
)
sender = kit.Sender(
    proof=("$.value[*].clientState", "$.validationTokens[*]"),
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.value[*].id", "receipt"),
    id_period=kit.minutes(1),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    renewal=renewal,
    setup_url="https://learn.microsoft.com/en-us/graph/api/subscription-post-subscriptions",
)
