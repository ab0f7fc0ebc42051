"""Chargebee brings a user name and password (HTTP Basic), and signs nothing.

The secret is `user:password`, as in the webhook's settings. The id is `$.id`, the same on every attempt;
events may come out of order, and `$.webhook_status` changes. Ask its API before money moves. Chargebee tries
seven more times in three and a half days.

https://www.chargebee.com/docs/billing/2.0/site-configuration/webhook_settings
"""

from hookonce.providers import kit

_VOLATILE = ("$.webhook_status", "$.webhooks")
events = kit.one_event(
    id=kit.or_body("$.id", without=_VOLATILE),
    type=kit.or_unknown("$.event_type"),
    occurred_at="$.occurred_at",
)
sender = kit.Sender(
    scheme=kit.Token(basic=True),
    id_is_signed=False,
    retry_horizon=kit.days(4),
    identity=kit.told_apart_by("$.id"),
    volatile=_VOLATILE,
    subject=kit.about_each(
        {
            "subscription_*": "$.content.subscription",
            "customer_*": "$.content.customer",
            "invoice_*": "$.content.invoice",
        },
        version=kit.field("$.occurred_at"),
        unit="s",
    ),
    setup_url="https://app.chargebee.com/webhooks",
)
