"""WorkOS signs `<ms>.<body>` with HMAC-SHA256, in hex: `WorkOS-Signature: t=<ms>, v1=<hex>`.

The id is `$.id`, the type `$.event`, the account the organization or directory that it is about. WorkOS's SDK
allows three minutes between signing and checking. Six retries in three days.

https://workos.com/docs/events/data-syncing/webhooks
"""

from datetime import datetime, timedelta
from typing import Unpack

from hookonce.providers.kit import (
    Hmac,
    Sender,
    SignOptions,
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
    header="workos-signature",
    key="v1",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(key="t", unit="ms", tolerance=timedelta(minutes=3)),
)
verify = scheme.verify


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> dict[str, str]:
    signed = scheme.sign(body, secret, now, **options)
    return {name: value.replace(",", ", ") for name, value in signed.items()}


sign = signer(_sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.event"), fixed("unknown")),
    account=first(field("$.data.organization_id"), field("$.data.directory_id")),
    occurred_at=field("$.created_at"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=3),
    identity=told_apart_by("$.id"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.workos.com/webhooks",
)
