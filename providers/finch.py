"""Finch signs `<id>.<time>.<body>` with HMAC-SHA256, base64 behind `v1,`: Standard Webhooks under other names.

The headers are `Finch-Event-Id`, `Finch-Timestamp` and `Finch-Signature` (a list, separated by spaces). The
secret is base64 without a prefix. The id is signed and the same on every retry, the time is not the same.

https://developer.tryfinch.com/developer-resources/Webhooks
"""

from hookonce.providers import kit

scheme = kit.Hmac(
    header="finch-signature",
    separator=" ",
    prefix="v1,",
    encoding="base64",
    signed="{header:finch-event-id}.{timestamp}.{body}",
    timestamp=kit.Timestamp(header="finch-timestamp"),
    secret="base64",
)
sign = kit.signer(scheme.sign, event_id="finch-event-id")
events = kit.one_event(
    id="header finch-event-id",
    type=kit.or_unknown("$.event_type"),
    account=kit.first("$.connection_id", "$.company_id", "$.account_id"),
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by("header finch-event-id"),
    setup_url="https://dashboard.tryfinch.com",
)
