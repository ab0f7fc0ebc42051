"""Veriff signs the body with HMAC-SHA256, in hex, in `X-HMAC-SIGNATURE`; the key is the integration's shared secret.

Newer integrations call the header `VRF-HMAC-SIGNATURE`. There are no ids: an event is its body. A session may have
several attempts, each with its `attemptId`; a decision that is changed later comes again with other contents. The
type is `decision.approved` and its like, of the other webhooks what they are called (`submitted`).

https://devdocs.veriff.com/docs/hmac-authentication-and-endpoint-security
"""

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header=("x-hmac-signature", "vrf-hmac-signature"))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=body_digest(),
    type=first(
        join(fixed("decision"), field("$.verification.status"), by="."),
        field("$.eventType"),
        field("$.action"),
        fixed("unknown"),
    ),
    occurred_at=first(field("$.verification.decisionTime"), field("$.time")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by(
        "$.verification.attemptId + $.verification.decisionTime",
        "$.time + $.attemptId",
        "$.attemptId + $.code",
        "$.id + $.code",
        "body",
        because="an attempt is started, submitted and decided once, and a decision made anew says when",
    ),
    check_secret=scheme.check_secret,
    setup_url="https://station.veriff.com/",
)
