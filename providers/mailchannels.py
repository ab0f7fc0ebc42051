"""MailChannels signs the body's digest by HTTP Message Signatures (RFC 9421) with Ed25519.

`Content-Digest` holds the SHA-256; `Signature-Input` says what is signed, when, and with which key, which is fetched.
MailChannels signs for all its customers with the same keys, so the secret is our `customer_handle`, which each event
of a batch must have; `handle:PEM` pins a key. There is no id: an event is known by all that it says, since two links
may be clicked in one second.

https://docs.mailchannels.net/email-api/webhooks
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, kit

sign = kit.signature_in_body.sign  # no signature: `deliver` makes it, once the body names the customer

_TIME: Final = kit.Timestamp(key="created")
_KEY: Final = "https://api.mailchannels.net/tx/v1/webhook/public-key?id="
_HANDLE: Final = "customer_handle"
events = kit.many_events(
    items="$",
    id=kit.data_digest(),
    type="$.event",
    account="$.customer_handle",
    occurred_at="$.timestamp",
)
_FETCHES = (r"https://api\.mailchannels\.net/tx/v1/webhook/public-key\?id=[A-Za-z0-9_-]{1,100}",)


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime, keys: kit.Documents = None) -> None:
    """Accept `delivery` if it is signed, of this body and of one of the customers. Raises: Rejected, KeyNeeded."""
    owners = kit.owners_of(secrets, _HANDLE)
    given = kit.http_message_signature.read(delivery)
    handles = kit.read_once(delivery, "handles", lambda _: _handles(kit.json_body(delivery)))
    ours = [owner for owner in owners if handles == {owner.name}]
    if not ours:
        raise Rejected(Reason.BAD_SIGNATURE, "the events are of none of the customers of this source")
    texts = [owner.key for owner in ours if owner.key] or [_key_text(given.key_id, keys)]
    kit.public_keys.expect_signature(
        kit.public_keys.public_keys(texts, "ed25519"), "ed25519", given.signature, given.message
    )
    _TIME.check(given.created, now)


def _handles(data: Any) -> set[str]:  # noqa: ANN401  any JSON
    """Return whose events they are. Raises: Rejected(too_large)."""
    found = data if isinstance(data, list) else []
    if len(found) > kit.MAX_EVENTS:
        raise Rejected(Reason.TOO_LARGE, f"{len(found)} events in one delivery, {kit.MAX_EVENTS} are taken")
    return {kit.json_paths.find_text(each, _HANDLE) for each in found}


def _key_text(key_id: str, keys: kit.Documents) -> str:
    """Return the public key of this id, as fetched; empty if the answer has none. Raises: KeyNeeded, Rejected."""
    data = kit.json_or_empty(kit.fetched(_KEY + key_id, keys, _FETCHES))
    return str(data.get("key")) if isinstance(data, dict) else ""


def check_secret(secret: str) -> None:
    """Raises: ValueError unless it starts with a customer's handle."""
    if not kit.owner_of(secret, _HANDLE).name:
        raise ValueError("the secret is not usable; expected the customer_handle, or 'handle:PEM'")


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:
    """Return a delivery. Raises: ValueError unless `secret` is `handle:PEM` with a private key."""
    owner = kit.owner_of(secret, _HANDLE)
    data = kit.json_or_empty(body)
    found = [each for each in (data if isinstance(data, list) else [data]) if isinstance(each, dict)]
    made = [{_HANDLE: owner.name} | each for each in found]
    raw = body if made == data else json.dumps(made).encode()
    headers = sign(body, secret, now) | dict(kit.http_message_signature.sign(raw, owner.key, "test", now))
    return Delivery("POST", options.get("url", ""), headers, raw)


sender = kit.Sender(
    id_is_signed=True,
    body_is_unsigned=False,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by("$[*].timestamp + $[*].request_id + $[*].event"),
    tolerance=_TIME.tolerance,
    max_body=5 << 20,  # it is parsed before it is known to be genuine
    fetches=_FETCHES,
    setup_url="https://console.mailchannels.net",
)
