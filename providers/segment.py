"""Segment signs the body with HMAC-SHA1, in hex; the key is the shared secret of the destination.

The id is `$.messageId`. The body does not tell the workspace: give each its own source. Retries go on for four
hours.

https://segment.com/docs/connections/destinations/catalog/webhooks/
"""

from hookonce.providers import kit

_VOLATILE = ("$.sentAt",)
events = kit.one_event(
    id=kit.or_body("$.messageId", without=_VOLATILE),
    type=kit.or_unknown("$.type"),
    account="$.projectId",
    occurred_at=kit.first("$.timestamp", "$.sentAt"),
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-signature", hash="sha1"),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    retries_on=kit.SERVER_ERRORS,
    identity=kit.told_apart_by("$.messageId"),
    volatile=_VOLATILE,
    setup_url="https://app.segment.com/goto-my-workspace/destinations",
)
