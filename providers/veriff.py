"""Veriff signs the body with HMAC-SHA256, in hex, in `X-HMAC-SIGNATURE`; the key is the integration's shared secret.

Newer integrations call the header `VRF-HMAC-SIGNATURE`. There are no ids: an event is its body. A session may have
several attempts, each with its `attemptId`; a decision that is changed later comes again with other contents. The
type is `decision.approved` and its like, `watchlist.updated_result` for a screening, and for the other webhooks their
name (`submitted`).

https://devdocs.veriff.com/docs/hmac-authentication-and-endpoint-security
"""

from hookonce.providers import kit

_SCREENED = kit.join(kit.fixed("watchlist"), "$.checkType", by=".")
events = kit.one_event(
    id=kit.body_digest(),
    type=kit.or_unknown(
        kit.join(kit.fixed("decision"), "$.verification.status", by="."), "$.eventType", "$.action", _SCREENED
    ),
    occurred_at=kit.first("$.verification.decisionTime", "$.time", "$.createdAt"),
)
sender = kit.Sender(
    scheme=kit.Hmac(header=("x-hmac-signature", "vrf-hmac-signature")),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by(
        "$.verification.attemptId + $.verification.decisionTime",
        "$.time + $.attemptId",
        "$.attemptId + $.code",
        "$.id + $.code",
        "body",
        because="an attempt is started, submitted and decided once, and a decision made again says when",
    ),
    setup_url="https://station.veriff.com/",
)
