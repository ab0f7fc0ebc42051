"""Finch signs `<id>.<time>.<body>` with HMAC-SHA256, base64 behind `v1,`: Standard Webhooks under other names.

The headers are `Finch-Event-Id`, `Finch-Timestamp` and `Finch-Signature` (a list, separated by spaces). The
secret is base64 without a prefix. The id is signed and the same on every retry, the time is not the same.

https://developer.tryfinch.com/developer-resources/Webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="finch-signature",
    separator=" ",
    prefix="v1,",
    encoding="base64",
    signed="{header:finch-event-id}.{timestamp}.{body}",
    timestamp=Timestamp(header="finch-timestamp"),
    secret="base64",  # noqa: S106  a codec's name
)
verify = scheme.verify
sign = signer(scheme.sign, event_id="finch-event-id")
events = one_event(
    id=header("finch-event-id"),
    type=first(field("$.event_type"), fixed("unknown")),
    account=first(field("$.connection_id"), field("$.company_id"), field("$.account_id")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=told_apart_by("header finch-event-id"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.tryfinch.com",
)
