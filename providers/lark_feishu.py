"""Lark (Feishu) signs with a plain SHA-256 over `<time><nonce><encrypt key><body>`, in hex, and encrypts the body.

The secret is the app's Encrypt Key; an app without one sends only a token in the body, and is refused. The
body is `{"encrypt": …}`, AES-CBC under the key's SHA-256; it is decrypted once it is verified, and so it is
stored. The id is `$.header.event_id`, in older events `$.uuid`. The URL is probed with a `url_verification`,
encrypted or not, and never signed: its challenge is sent back. Lark waits 3 s and tries again after 15 s, 5
min, 1 h and 6 h.

https://open.larksuite.com/document/server-docs/event-subscription-guide/event-subscription-configure-/encrypt-key-encryption-configuration-case
"""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    KeyedDigest,
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    json_body,
    one_event,
    same_challenge,
    signer,
    told_apart_by,
    unsigned_probe,
)
from hookonce.providers.kit.crypto.encrypted_body import decrypt_json

_NONCE = "x-lark-request-nonce"
scheme = KeyedDigest(
    header="x-lark-signature",
    before=f"{{timestamp}}{{header:{_NONCE}}}",
    after="{body}",
    timestamp=Timestamp(header="x-lark-request-timestamp", tolerance=timedelta(hours=8)),
)
verify = scheme.verify
sign = signer(scheme.sign, event_id=_NONCE)
_decode = partial(decrypt_json, name="encrypt")
events = one_event(
    id=first(field("$.header.event_id"), field("$.uuid"), body_digest()),
    type=first(field("$.header.event_type"), field("$.event.type"), field("$.type"), fixed("encrypted")),
    account=first(field("$.header.tenant_key"), field("$.event.tenant_key"), field("$.header.app_id")),
    occurred_at=first(field("$.header.create_time"), field("$.ts")),
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Send back the challenge of a `url_verification`; None for anything else."""
    probe = unsigned_probe(delivery, lambda sent: json_body(_decode(sent, secrets)))
    if probe.get("type") != "url_verification":
        return None
    return same_challenge(probe.get("challenge"))


sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=8),
    identity=told_apart_by(
        "$.header.event_id",
        "$.uuid",
        "body",
        because="every event of either version has an id; what can not be opened has a nonce of its own",
    ),
    tolerance=scheme.timestamp.tolerance,
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    check_secret=scheme.check_secret,
    handshake=handshake,
    decode=_decode,
    setup_url="https://open.larksuite.com/app",
)
