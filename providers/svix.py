"""Svix signs `<id>.<timestamp>.<body>` as Standard Webhooks do, with HMAC-SHA256 in base64.

For senders that use Svix and have no module of their own. Svix's own header names come first, the unbranded
`webhook-*` are taken too, as in its SDK. The id is the header `svix-id`, which stays the same for retries and
for messages that are sent again by hand. What is in the body is up to the sender, so the type is looked for
in the usual places and is `unknown` otherwise. A transformation at the endpoint may change body and method (PUT).
Svix tries for a little more than a day.

https://docs.svix.com/receiving/verifying-payloads/how
"""

from hookonce.providers import kit

scheme = kit.StandardWebhooks(vendors=("svix", "webhook"))
events = kit.one_event(
    id=scheme.id,
    type=kit.or_unknown("$.type", "$.event_type", "$.eventType"),
    occurred_at=kit.first("$.timestamp", "$.created_at", kit.header("svix-timestamp", "webhook-timestamp")),
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    methods=("POST", "PUT"),
    setup_url="https://docs.svix.com/receiving/introduction",
)
