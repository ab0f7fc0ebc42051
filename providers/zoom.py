"""Zoom signs `v0:<time>:<body>` with HMAC-SHA256, hex behind `v0=`; the key is the app's Secret Token.

There is no event id (`x-zm-trackingid` is the request's): it is a digest of event, time and payload.
The URL is probed when it is saved and every 72 hours with a signed `endpoint.url_validation`, which wants its
`plainToken` back with HMAC-SHA256 of it under the same token. That is no signature of a delivery, since those
start with `v0:` and a plain token has no colon; only Zoom gets an answer. Retries after 5, 20 and 60 minutes.

https://developers.zoom.us/docs/api/webhooks/
"""

from collections.abc import Sequence

from hookonce.providers import Delivery, Reply, kit

scheme = kit.Hmac(
    header="x-zm-signature",
    prefix="v0=",
    signed="v0:{timestamp}:{body}",
    timestamp=kit.Timestamp(header="x-zm-request-timestamp"),
)
events = kit.one_event(
    id=kit.digest("$.event", "$.event_ts", "$.payload"),
    type=kit.or_unknown("$.event"),
    account="$.payload.account_id",
    occurred_at="$.event_ts",
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer a validation that Zoom signed, with the secret that it signed with; None for anything else."""
    if b"endpoint.url_validation" not in delivery.body:
        return None
    for secret in secrets:
        data = kit.authentic_body(scheme.authentic, delivery, [secret])
        if isinstance(data, dict) and data.get("event") == "endpoint.url_validation":
            return _answer(data.get("payload"), secret)
    return None


def _answer(payload: object, secret: str) -> Reply | None:
    token = payload.get("plainToken") if isinstance(payload, dict) else None
    made = kit.proof(token, [secret], "hex")
    return kit.json_reply({"plainToken": str(token), "encryptedToken": made}) if made else None


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.hours(3),
    identity=kit.told_apart_by("$.event_ts + $.event + $.payload"),
    setup_url="https://marketplace.zoom.us/user/build",
)
