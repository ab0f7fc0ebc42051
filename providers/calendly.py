"""Calendly signs `<t>.<body>` with HMAC-SHA256, in hex, in a header like `t=1767225600,v1=…`.

Calendly asks to refuse what is older than three minutes. There is no id: it is made of the event, what it is
about, and when that was. Retries go on for a day.

https://developer.calendly.com/api-docs/ZG9jOjM2MzE2MDM4-webhook-signatures
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
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="calendly-webhook-signature",
    key="v1",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(key="t", tolerance=timedelta(minutes=3)),
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(join(field("$.event"), field("$.payload.uri"), field("$.created_at")), body_digest()),
    type=first(field("$.event"), fixed("unknown")),
    account=field("$.created_by"),
    occurred_at=field("$.created_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=2),
    disables_after="a day of failures",
    identity=told_apart_by("$.event + $.payload.uri + $.created_at"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://developer.calendly.com/api-docs/c1ddc06ce1f1b-create-webhook-subscription",
)
