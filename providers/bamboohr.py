"""BambooHR signs `<body><X-BambooHR-Timestamp>` with HMAC-SHA256, in hex; the key is the webhook's private key.

The time is that of the request, so every attempt has a new one; it may be off by five minutes, and is taken in
seconds, milliseconds or RFC 3339, since the page does not say which. Event-based webhooks send one event, as JSON
or as a form, field-based ones a list of employees. Neither has ids: who changed what, and when, is in the body.

https://documentation.bamboohr.com/docs/webhooks
"""

from hookonce.providers import Delivery
from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    any_body_or_none,
    body_digest,
    data_digest,
    field,
    first,
    fixed,
    many_events,
    one_event,
    one_of_two,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="x-bamboohr-signature",
    signed="{body}{timestamp}",
    timestamp=Timestamp(header="x-bamboohr-timestamp", unit="any"),
)
verify = scheme.verify
sign = signer(scheme.sign)


def _is_batch(delivery: Delivery) -> bool:
    if b'"employees"' not in delivery.body:
        return False
    data = any_body_or_none(delivery)
    return isinstance(data, dict) and isinstance(data.get("employees"), list)


events = one_of_two(
    one_event(
        id=body_digest(),
        type=first(field("$.type"), fixed("unknown")),
        account=first(field("$.data.companyId"), field("$['data[companyId]']")),
        occurred_at=field("$.timestamp"),
        read=any_body_or_none,
    ),
    many_events(
        items="$.employees",
        id=data_digest(),
        type=first(field("$.action"), fixed("unknown")),
        occurred_at=field("$.timestamp"),
    ),
    when=_is_batch,
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by(
        "$.timestamp",
        "$.employees[*].timestamp",
        "body",
        new_on_retry=("signed time",),
        known_from="https://documentation.bamboohr.com/docs/webhooks",
        because="what is alike in its second, its employee and its fields is one event",
    ),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://documentation.bamboohr.com/docs/webhooks",
)
