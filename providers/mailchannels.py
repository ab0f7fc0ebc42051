"""MailChannels signs the body's digest by HTTP Message Signatures (RFC 9421) with Ed25519.

`Content-Digest` holds the SHA-256; `Signature-Input` says what is signed, when, and with which key, which is
fetched. Everybody's deliveries are signed with such keys, so the secret is our `customer_handle`, which each
event of a batch must have; `handle:PEM` pins a key. There is no id: an event is known by all that it says, since
two links may be clicked in one second.

https://docs.mailchannels.net/email-api/webhooks
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit import (
    MAX_EVENTS,
    Documents,
    Sender,
    SignOptions,
    Timestamp,
    data_digest,
    digest,
    fetched,
    field,
    json_body,
    json_or_empty,
    json_paths,
    many_events,
    owner_of,
    owners_of,
    read_once,
    signature_in_body,
    told_apart_by,
)
from hookonce.providers.kit.crypto.public_keys import expect_signature, public_keys
from hookonce.providers.kit.schemes import http_message_signature

sign = signature_in_body.sign

_TIME: Final = Timestamp(key="created")
_KEY: Final = "https://api.mailchannels.net/tx/v1/webhook/public-key?id="
_HANDLE: Final = "customer_handle"
_FORMER: Final = ("$.request_id", "$.smtp_id", "$.event", "$.timestamp", "$.recipients", "$.email")
events = many_events(
    items="$",
    id=data_digest(),
    former=(digest(*map(field, _FORMER)),),
    type=field("$.event"),
    account=field("$.customer_handle"),
    occurred_at=field("$.timestamp"),
)
_FETCHES = (r"https://api\.mailchannels\.net/tx/v1/webhook/public-key\?id=[A-Za-z0-9_-]{1,100}",)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime, keys: Documents = None) -> None:
    """Accept `delivery` if it is signed, of this body and of one of the customers. Raises: Rejected, KeyNeeded."""
    owners = owners_of(secrets, _HANDLE)
    given = http_message_signature.read(delivery)
    handles = read_once(delivery, "handles", lambda _: _handles(json_body(delivery)))
    ours = [owner for owner in owners if handles == {owner.name}]
    if not ours:
        raise Rejected(Reason.BAD_SIGNATURE, "the events are of none of the customers of this source")
    texts = [owner.key for owner in ours if owner.key] or [_asked(given.key_id, keys)]
    expect_signature(public_keys(texts, "ed25519"), "ed25519", given.signature, given.message)
    _TIME.check(given.created, now)


def _handles(data: Any) -> set[str]:  # noqa: ANN401  any JSON
    """Return whose events they are. Raises: Rejected(too_large)."""
    found = data if isinstance(data, list) else []
    if len(found) > MAX_EVENTS:
        raise Rejected(Reason.TOO_LARGE, f"{len(found)} events in one delivery, {MAX_EVENTS} are taken")
    return {json_paths.find_text(each, _HANDLE) for each in found}


def _asked(key_id: str, keys: Documents) -> str:
    data = json_or_empty(fetched(_KEY + key_id, keys, _FETCHES))
    return str(data.get("key")) if isinstance(data, dict) else ""


def check_secret(secret: str) -> None:
    """Raises: ValueError unless it starts with a customer's handle."""
    if not owner_of(secret, _HANDLE).name:
        raise ValueError("the secret is not usable; expected the customer_handle, or 'handle:PEM'")


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
    """What MailChannels would send. Raises: ValueError unless `secret` is `handle:PEM` with a private key."""
    owner = owner_of(secret, _HANDLE)
    data = json_or_empty(body)
    found = [each for each in (data if isinstance(data, list) else [data]) if isinstance(each, dict)]
    made = [{_HANDLE: owner.name} | each for each in found]
    raw = body if made == data else json.dumps(made).encode()
    headers = sign(body, secret, now) | dict(http_message_signature.sign(raw, owner.key, "test", now))
    return Delivery("POST", options.get("url", ""), headers, raw)


sender = Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by("$[*].timestamp + $[*].request_id + $[*].event"),
    tolerance=_TIME.tolerance,
    max_body=5 << 20,  # it is parsed before it is known to be genuine
    fetches=_FETCHES,
    check_secret=check_secret,
    deliver=deliver,
    setup_url="https://console.mailchannels.net",
)
