"""Airwallex signs `<x-timestamp><body>`, with nothing between, with HMAC-SHA256 in hex.

The time is in milliseconds and may be five minutes off, as others who verify it have it: the package `airwallex` on
PyPI, which is not the vendor's. The id is `$.id`, the type `$.name`. Each notification URL has its own secret. Retries
go on for three days.

https://www.airwallex.com/docs/developer-tools/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="x-signature",
    signed="{timestamp}{body}",
    timestamp=Timestamp(header="x-timestamp", unit="ms"),
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.name"), fixed("unknown")),
    account=first(field("$.account_id"), field("$.accountId")),
    occurred_at=first(field("$.created_at"), field("$.createdAt")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=4),
    identity=told_apart_by("$.id"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://www.airwallex.com/app/developer/webhooks",
)
