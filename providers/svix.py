"""Svix signs `<id>.<timestamp>.<body>` as Standard Webhooks do, with HMAC-SHA256 in base64.

For senders that use Svix and have no module of their own. Svix's own header names come first, the unbranded
`webhook-*` are taken too, as in its SDK. The id is the header `svix-id`, which stays the same for retries and
for messages that are sent again by hand. What is in the body is up to the sender, so the type is looked for
in the usual places and is `unknown` otherwise. A transformation at the endpoint may change body and method (PUT).
Svix tries for a little more than a day.

https://docs.svix.com/receiving/verifying-payloads/how
"""

from datetime import timedelta

from hookonce.providers.kit import Sender, StandardWebhooks, field, first, fixed, header, one_event, signer

scheme = StandardWebhooks(vendors=("svix", "webhook"))
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=scheme.id,
    type=first(field("$.type"), field("$.event_type"), field("$.eventType"), fixed("unknown")),
    occurred_at=first(
        field("$.timestamp"), field("$.created_at"), header("svix-timestamp", "webhook-timestamp")
    ),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=scheme.identity,
    tolerance=scheme.tolerance,
    methods=("POST", "PUT"),
    check_secret=scheme.check_secret,
    setup_url="https://docs.svix.com/receiving/introduction",
)
