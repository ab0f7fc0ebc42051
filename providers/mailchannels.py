"""MailChannels signs the body's digest by HTTP Message Signatures (RFC 9421) with Ed25519.

`Content-Digest` holds the SHA-256; `Signature-Input` says what is signed, when, and with which key, which is
fetched. Everybody's deliveries are signed with such keys, so the secret is our `customer_handle`, which each
event of a batch must have; `handle:PEM` pins a key. There is no id: one is made of message, recipient, event
and time.

https://docs.mailchannels.net/email-api/webhooks
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Unpack

from providers import Delivery, Reason, Rejected
from providers.kit import Said, Timestamp, digest, field, json_body, many_events, message_signatures
from providers.kit.asymmetric import expect_signature, public_keys
from providers.kit.fetched import Documents, fetched, owner_of, owners_of
from providers.kit.in_body import said_in, sign

_TIME: Final = Timestamp(key="created")
_KEY: Final = "https://api.mailchannels.net/tx/v1/webhook/public-key?id="
_HANDLE: Final = "customer_handle"
_PARTS: Final = ("$.request_id", "$.smtp_id", "$.event", "$.timestamp", "$.recipients", "$.email")
events = many_events(
    items="$",
    id=digest(*map(field, _PARTS)),
    type=field("$.event"),
    account=field("$.customer_handle"),
    occurred_at=field("$.timestamp"),
)
TOLERANCE = _TIME.tolerance
FETCHES = (r"https://api\.mailchannels\.net/tx/v1/webhook/public-key\?id=[A-Za-z0-9_-]{1,100}",)
MAX_BODY = 5 << 20  # it is parsed before it is known to be genuine
SETUP = "https://console.mailchannels.net"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime, keys: Documents = None) -> None:
    """Accept `delivery` if it is signed, of this body and of one of the customers. Raises: Rejected, KeyNeeded."""
    owners = owners_of(secrets, _HANDLE)
    given = message_signatures.read(delivery)
    handles = _handles(json_body(delivery))
    ours = [owner for owner in owners if handles == {owner.name}]
    if not ours:
        raise Rejected(Reason.BAD_SIGNATURE, "the events are of none of the customers of this source")
    texts = [owner.key for owner in ours if owner.key] or [_asked(given.key_id, keys)]
    expect_signature(public_keys(texts, "ed25519"), "ed25519", given.signature, given.message)
    _TIME.check(given.created, now)


def _handles(data: Any) -> set[str]:  # noqa: ANN401  any JSON
    found = data if isinstance(data, list) else []
    return {str(each.get(_HANDLE)) if isinstance(each, dict) else "" for each in found}


def _asked(key_id: str, keys: Documents) -> str:
    data = said_in(fetched(_KEY + key_id, keys, FETCHES))
    return str(data.get("key")) if isinstance(data, dict) else ""


def CHECK(secret: str) -> None:  # noqa: N802  a declaration of the module
    """Raises: ValueError unless it starts with a customer's handle."""
    if not owner_of(secret, _HANDLE).name:
        raise ValueError("the secret is not usable; expected the customer_handle, or 'handle:PEM'")


def deliver(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> Delivery:
    """What MailChannels would send. Raises: ValueError unless `secret` is `handle:PEM` with a private key."""
    owner, data = owner_of(secret, _HANDLE), said_in(body)
    found = [each for each in (data if isinstance(data, list) else [data]) if isinstance(each, dict)]
    made = [{_HANDLE: owner.name} | each for each in found]
    raw = body if made == data else json.dumps(made).encode()
    headers = sign(body, secret, now) | dict(message_signatures.sign(raw, owner.key, "test", now))
    return Delivery("POST", said.get("url", ""), headers, raw)
