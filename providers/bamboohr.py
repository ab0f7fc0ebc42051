"""BambooHR signs `<body><X-BambooHR-Timestamp>` with HMAC-SHA256, in hex; the key is the webhook's private key.

The time is that of the request, so every attempt has a new one; it may be off by five minutes, and is taken in
seconds, milliseconds or RFC 3339, since the page does not say which. Event-based webhooks send one event, as JSON
or as a form, field-based ones a list of employees. Neither has ids: who changed what, and when, is in the body.

https://documentation.bamboohr.com/docs/webhooks
"""

from hookonce.providers import Delivery, kit


def _is_batch(delivery: Delivery) -> bool:
    if b'"employees"' not in delivery.body:
        return False
    data = kit.any_body_or_none(delivery)
    return isinstance(data, dict) and isinstance(data.get("employees"), list)


events = kit.one_of_two(
    kit.one_event(
        id=kit.body_digest(),
        type=kit.or_unknown("$.type"),
        account=kit.first("$.data.companyId", "$['data[companyId]']"),
        occurred_at="$.timestamp",
        read=kit.any_body_or_none,
    ),
    kit.many_events(
        items="$.employees", id=kit.data_digest(), type=kit.or_unknown("$.action"), occurred_at="$.timestamp"
    ),
    when=_is_batch,
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header="x-bamboohr-signature",
        signed="{body}{timestamp}",
        timestamp=kit.Timestamp(header="x-bamboohr-timestamp", unit="any"),
    ),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by(
        "$.timestamp",
        "$.employees[*].timestamp",
        "body",
        new_on_retry=("signed time",),
        known_from="https://documentation.bamboohr.com/docs/webhooks",
        because="what is alike in its second, its employee and its fields is one event",
    ),
    setup_url="https://documentation.bamboohr.com/docs/webhooks",
)
