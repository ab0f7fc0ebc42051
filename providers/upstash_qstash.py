"""QStash sends a token (JWT, HS256) in `Upstash-Signature`, over the body's SHA-256 (`body`) and our URL (`sub`).

There are always two keys, the current and the next one: configure both as secrets, and rolling needs nothing
more. The hash is base64url, padded or not. The id is `Upstash-Message-Id`, the same on every attempt and not
covered by the token. Bodies are whatever was published, by whichever method (`Upstash-Method`), so the event has no
type of its own.

https://upstash.com/docs/qstash/howto/signature
"""

from hookonce.providers import kit

scheme = kit.Jwt(
    header="upstash-signature",
    issuers=("Upstash",),
    body_hash=("body", "base64url"),
    url=("sub", "plain"),
    needs=("exp", "nbf"),
    leeway=kit.seconds(5),
)
sign = kit.signer(scheme.sign, event_id="upstash-message-id")


events = kit.one_event(id="header upstash-message-id", type=kit.fixed("message"), read=kit.any_body_or_none)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="the body is what somebody published, and a schedule publishes the same each time",
    signs_url=True,
    retry_horizon="whoever publishes a message chooses how often, and the pauses, of a day each at most",
    identity=kit.told_apart_by("header upstash-message-id"),
    methods=("POST", "PUT", "PATCH", "DELETE", "GET"),
    setup_url="https://console.upstash.com/qstash",
)
