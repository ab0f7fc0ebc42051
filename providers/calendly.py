"""Calendly signs `<t>.<body>` with HMAC-SHA256, in hex, in a header like `t=1767225600,v1=…`.

Calendly asks to refuse what is older than three minutes. There is no id: it is made of the event, what it is
about, and when that was. Retries go on for a day.

https://developer.calendly.com/api-docs/ZG9jOjM2MzE2MDM4-webhook-signatures
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body(kit.join("$.event", "$.payload.uri", "$.created_at")),
    type=kit.or_unknown("$.event"),
    account="$.created_by",
    occurred_at="$.created_at",
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header="calendly-webhook-signature",
        key="v1",
        signed="{timestamp}.{body}",
        timestamp=kit.Timestamp(key="t", tolerance=kit.minutes(3)),
    ),
    id_is_signed=True,
    retry_horizon=kit.days(2),
    disables_after="a day of failures",
    identity=kit.told_apart_by("$.event + $.payload.uri + $.created_at"),
    subject=kit.about(entity=("$.payload.uri",), version="$.payload.updated_at"),
    setup_url="https://developer.calendly.com/api-docs/c1ddc06ce1f1b-create-webhook-subscription",
)
