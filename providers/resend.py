"""Resend sends by Svix: `<id>.<timestamp>.<body>` signed with HMAC-SHA256, in base64.

The id is the header `svix-id`; `$.data.email_id` is shared by all events of one email. Each endpoint has a
secret of its own.

https://resend.com/docs/dashboard/webhooks/verify-webhooks-requests
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("svix", "webhook"))
events = kit.one_event(id=scheme.id, type=kit.or_unknown("$.type"), occurred_at="$.created_at")
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    retries_on=kit.UNSUCCESSFUL,
    disables_after="five days of failures",
    setup_url="https://resend.com/webhooks",
)
