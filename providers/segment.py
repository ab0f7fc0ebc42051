"""Segment signs the body with HMAC-SHA1, in hex; the key is the shared secret of the destination.

The id is `$.messageId`. The body does not tell the workspace: give each its own source. Retries go on for four
hours.

https://segment.com/docs/connections/destinations/catalog/webhooks/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    SERVER_ERRORS,
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-signature", hash="sha1")
verify = scheme.verify
sign = signer(scheme.sign)
_VOLATILE = ("$.sentAt",)
events = one_event(
    id=first(field("$.messageId"), body_digest(*_VOLATILE)),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.projectId"),
    occurred_at=first(field("$.timestamp"), field("$.sentAt")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    retries_on=SERVER_ERRORS,
    identity=told_apart_by("$.messageId"),
    volatile=_VOLATILE,
    check_secret=scheme.check_secret,
    setup_url="https://app.segment.com/goto-my-workspace/destinations",
)
