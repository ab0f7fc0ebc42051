"""QStash sends a token (JWT, HS256) in `Upstash-Signature`, over the body's SHA-256 (`body`) and our URL (`sub`).

There are always two keys, the current and the next one: configure both as secrets, and rolling needs nothing
more. The hash is base64url, padded or not. The id is `Upstash-Message-Id`, the same on every attempt and not
covered by the token. Bodies are whatever was published, by whichever method (`Upstash-Method`), so the event has no
type of its own.

https://upstash.com/docs/qstash/howto/signature
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    any_body_or_none,
    fixed,
    header,
    one_event,
    signer,
    told_apart_by,
)
from hookonce.providers.kit.schemes.jwt import Jwt

scheme = Jwt(
    header="upstash-signature",
    issuers=("Upstash",),
    body_hash=("body", "base64url"),
    url=("sub", "plain"),
    needs=("exp", "nbf"),
    leeway=timedelta(seconds=5),
)
verify = scheme.verify
sign = signer(scheme.sign, event_id="upstash-message-id")


events = one_event(id=header("upstash-message-id"), type=fixed("message"), read=any_body_or_none)

sender = Sender(
    id_is_signed=False,
    signs_url=True,
    retry_horizon=None,
    horizon_unknown="whoever publishes a message chooses how often, and the pauses, of a day each at most",
    identity=told_apart_by("header upstash-message-id"),
    tolerance=scheme.tolerance,
    methods=("POST", "PUT", "PATCH", "DELETE", "GET"),
    check_secret=scheme.check_secret,
    setup_url="https://console.upstash.com/qstash",
)
