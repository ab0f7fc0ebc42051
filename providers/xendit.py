"""Xendit brings the webhook verification token of the account in `x-callback-token`, and signs nothing.

Newer webhooks name their `$.event`, older ones are the object itself, and their type is its status. An event is its
body: every one has an id of what it is about and when that was changed. There are six retries within 24 hours, and
the dashboard can send one again.

https://docs.xendit.co/apidocs/webhook-behavior
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.body_digest(),
    type=kit.or_unknown("$.event", "$.status"),
    account=kit.first("$.business_id", "$.user_id", "$.owner_id"),
    occurred_at=kit.first("$.created", "$.updated"),
)
sender = kit.Sender(
    scheme=kit.Token(header="x-callback-token"),
    id_is_signed=False,
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by(
        "$.created", "$.updated", "body", because="the body has the id of the payment and when it was changed"
    ),
    setup_url="https://dashboard.xendit.co/settings/developers#webhooks",
)
