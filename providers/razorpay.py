"""Razorpay signs the body with HMAC-SHA256, in hex; the key is the webhook's secret, not the API's.

The id is `X-Razorpay-Event-Id`, the same on every retry and not signed. The type is `$.event`, the account
`$.account_id`. Events may come out of order. Retries go on for 24 hours, then the webhook is switched off.

https://razorpay.com/docs/webhooks/validate-test/
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="x-razorpay-signature")
sign = kit.signer(scheme.sign, event_id="x-razorpay-event-id")
events = kit.one_event(
    id=kit.or_body("header x-razorpay-event-id"),
    type=kit.or_unknown("$.event"),
    account="$.account_id",
    occurred_at="$.created_at",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    holds_repeats="a body names its event, what it is about, and `$.created_at`",
    retry_horizon=kit.days(1),
    retries_on=kit.UNSUCCESSFUL,
    disables_after="a day of failures",
    identity=kit.told_apart_by("header x-razorpay-event-id"),
    subject=kit.about_each(
        {
            "payment.dispute.*": "$.payload.dispute",
            "payment.*": "$.payload.payment",
            "payment_link.*": "$.payload.payment_link",
            "invoice.*": "$.payload.invoice",
            "order.*": "$.payload.order",
            "refund.*": "$.payload.refund",
            "subscription.*": "$.payload.subscription",
        },
        id="$.entity.id",
        version=kit.field("$.created_at"),
        unit="s",
    ),
    setup_url="https://dashboard.razorpay.com/app/webhooks",
)
