"""Segment signs the body with HMAC-SHA1, in hex; the key is the shared secret of the destination.

The id is `$.messageId`. The body does not tell the workspace: give each its own source. Retries go on for four
hours.

https://segment.com/docs/connections/destinations/catalog/webhooks/
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(header="x-signature", hash="sha1")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
VOLATILE = ("$.sentAt",)
events = one_event(
    id=first(field("$.messageId"), body_digest(*VOLATILE)),
    type=first(field("$.type"), fixed("unknown")),
    account=field("$.projectId"),
    occurred_at=first(field("$.timestamp"), field("$.sentAt")),
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://app.segment.com/goto-my-workspace/destinations"
