"""Lark (Feishu) signs with a plain SHA-256 over `<time><nonce><encrypt key><body>`, in hex, and encrypts the body.

The secret is the app's Encrypt Key; an app without one sends only a token in the body, and is refused. The
body is `{"encrypt": …}`, AES-CBC under the key's SHA-256; it is decrypted once it is verified, and so it is
stored. The id is `$.header.event_id`, in older events `$.uuid`. The URL is probed with a `url_verification`,
encrypted or not, and never signed: its challenge is sent back. Lark waits 3 s and tries again after 15 s, 5
min, 1 h and 6 h.

https://open.larksuite.com/document/server-docs/event-subscription-guide/event-subscription-configure-/encrypt-key-encryption-configuration-case
"""

from collections.abc import Sequence
from functools import partial

from hookonce.providers import Delivery, Reply, kit

_NONCE = "x-lark-request-nonce"
scheme = kit.KeyedDigest(
    header="x-lark-signature",
    before=f"{{timestamp}}{{header:{_NONCE}}}",
    after="{body}",
    timestamp=kit.Timestamp(header="x-lark-request-timestamp", tolerance=kit.hours(8)),
)
sign = kit.signer(scheme.sign, event_id=_NONCE)
_decode = partial(kit.encrypted_body.decrypt_json, name="encrypt")
events = kit.one_event(
    id=kit.or_body("$.header.event_id", "$.uuid"),
    type=kit.first("$.header.event_type", "$.event.type", "$.type", kit.fixed("encrypted")),
    account=kit.first("$.header.tenant_key", "$.event.tenant_key", "$.header.app_id"),
    occurred_at=kit.first("$.header.create_time", "$.ts"),
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Send back the challenge of a `url_verification`; None for anything else."""
    probe = kit.unsigned_probe(delivery, lambda sent: kit.json_body(_decode(sent, secrets)))
    if probe.get("type") != "url_verification":
        return None
    return kit.same_challenge(probe.get("challenge"))


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.hours(8),
    identity=kit.told_apart_by(
        "$.header.event_id",
        "$.uuid",
        "body",
        because="every event of either version has an id; what can not be opened has a nonce of its own",
    ),
    tolerance=scheme.timestamp.tolerance,
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    decode=_decode,
    setup_url="https://open.larksuite.com/app",
)
