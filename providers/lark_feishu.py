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

from providers import Delivery, Rejected, Reply
from providers.kit import Timestamp, body_digest, field, first, fixed, json_body, one_event, signer
from providers.kit.digests import Digest
from providers.kit.probing import same_challenge
from providers.kit.sealed import open_json

_NONCE = "x-lark-request-nonce"
scheme = Digest(
    header="x-lark-signature",
    before=f"{{timestamp}}{{header:{_NONCE}}}",
    after="{body}",
    timestamp=Timestamp(header="x-lark-request-timestamp", tolerance=timedelta(hours=8)),
)
verify, CHECK, TOLERANCE = scheme.verify, scheme.check_secret, scheme.timestamp.tolerance
sign = signer(scheme.sign, event_id=_NONCE)
opened = partial(open_json, name="encrypt")
events = one_event(
    id=first(field("$.header.event_id"), field("$.uuid"), body_digest()),
    type=first(field("$.header.event_type"), field("$.event.type"), field("$.type"), fixed("encrypted")),
    account=first(field("$.header.tenant_key"), field("$.event.tenant_key"), field("$.header.app_id")),
    occurred_at=first(field("$.header.create_time"), field("$.ts")),
)
MAX_BODY = 1 << 20  # it is parsed before it is known to be genuine
RETRY_HORIZON = timedelta(hours=8)
SETUP = "https://open.larksuite.com/app"


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Send back the challenge of a `url_verification`; None for anything else."""
    try:
        probe = json_body(opened(delivery, secrets))
    except Rejected:
        return None
    if not isinstance(probe, dict) or probe.get("type") != "url_verification":
        return None
    return same_challenge(probe.get("challenge"))
