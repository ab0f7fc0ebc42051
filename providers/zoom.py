"""Zoom signs `v0:<time>:<body>` with HMAC-SHA256, hex behind `v0=`; the key is the app's Secret Token.

There is no event id (`x-zm-trackingid` is the request's): it is a digest of event, time and payload.
The URL is probed when it is saved and every 72 hours with a signed `endpoint.url_validation`, which wants its
`plainToken` back with HMAC-SHA256 of it under the same token. That is no signature of a delivery, since those
start with `v0:` and a plain token has no colon; only Zoom gets an answer. Retries after 5, 20 and 60 minutes.

https://developers.zoom.us/docs/api/webhooks/
"""

from collections.abc import Sequence
from datetime import timedelta

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    authentic_body,
    digest,
    field,
    first,
    fixed,
    json_reply,
    one_event,
    proof,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="x-zm-signature",
    prefix="v0=",
    signed="v0:{timestamp}:{body}",
    timestamp=Timestamp(header="x-zm-request-timestamp"),
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=digest(field("$.event"), field("$.event_ts"), field("$.payload")),
    type=first(field("$.event"), fixed("unknown")),
    account=field("$.payload.account_id"),
    occurred_at=field("$.event_ts"),
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer a validation that Zoom signed, with the secret that it signed with; None for anything else."""
    if b"endpoint.url_validation" not in delivery.body:
        return None
    for secret in secrets:
        data = authentic_body(scheme.authentic, delivery, [secret])
        if isinstance(data, dict) and data.get("event") == "endpoint.url_validation":
            return _answer(data.get("payload"), secret)
    return None


def _answer(payload: object, secret: str) -> Reply | None:
    token = payload.get("plainToken") if isinstance(payload, dict) else None
    made = proof(token, [secret], "hex")
    return json_reply({"plainToken": str(token), "encryptedToken": made}) if made else None


sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=3),
    identity=told_apart_by("$.event_ts + $.event + $.payload"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    handshake=handshake,
    setup_url="https://marketplace.zoom.us/user/build",
)
