"""Clerk sends by Svix: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `svix-id`. `$.data.id` is that of the user or organization the event is about, and many
events share it. `$.instance_id` (newer payloads only) tells the Clerk instance.

https://clerk.com/docs/guides/development/webhooks/overview
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("svix", "webhook"))
events = kit.one_event(
    id=scheme.id, type=kit.or_unknown("$.type"), account="$.instance_id", occurred_at="$.timestamp"
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    retries_on=kit.UNSUCCESSFUL,
    disables_after="five days of failures",
    subject=kit.about(entity=("$.data.object", "$.data.id"), version="$.timestamp", unit="ms"),
    setup_url="https://dashboard.clerk.com/last-active?path=webhooks",
)
