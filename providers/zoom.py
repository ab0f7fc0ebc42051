"""Zoom signs `v0:<time>:<body>` with HMAC-SHA256, hex behind `v0=`; the key is the app's Secret Token.

There is no event id (`x-zm-trackingid` is the request's): it is a digest of event, time and payload.
The URL is probed when it is saved and every 72 hours with a signed `endpoint.url_validation`, which wants its
`plainToken` back with HMAC-SHA256 of it under the same token. That is no signature of a delivery, since those
start with `v0:` and a plain token has no colon; only Zoom gets an answer. Retries after 5, 20 and 60 minutes.

https://developers.zoom.us/docs/api/webhooks/
"""

from collections.abc import Sequence
from datetime import timedelta

from providers import Delivery, Reply
from providers.kit import Hmac, Timestamp, digest, field, first, fixed, one_event, signer
from providers.kit.probing import json_reply, proof, said_by_sender

scheme = Hmac(
    header="x-zm-signature",
    prefix="v0=",
    signed="v0:{timestamp}:{body}",
    timestamp=Timestamp(header="x-zm-request-timestamp"),
)
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=digest(field("$.event"), field("$.event_ts"), field("$.payload")),
    type=first(field("$.event"), fixed("unknown")),
    account=field("$.payload.account_id"),
    occurred_at=field("$.event_ts"),
)
RETRY_HORIZON = timedelta(hours=3)
SETUP = "https://marketplace.zoom.us/user/build"


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer a validation that Zoom signed, with the secret that it signed with; None for anything else."""
    if b"endpoint.url_validation" not in delivery.body:
        return None
    for secret in secrets:
        data = said_by_sender(scheme.authentic, delivery, [secret])
        if isinstance(data, dict) and data.get("event") == "endpoint.url_validation":
            return _answer(data.get("payload"), secret)
    return None


def _answer(payload: object, secret: str) -> Reply | None:
    token = payload.get("plainToken") if isinstance(payload, dict) else None
    made = proof(token, [secret], "hex")
    return json_reply({"plainToken": str(token), "encryptedToken": made}) if made else None
