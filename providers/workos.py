"""WorkOS signs `<ms>.<body>` with HMAC-SHA256, in hex: `WorkOS-Signature: t=<ms>, v1=<hex>`.

The id is `$.id`, the type `$.event`, the account the organization or directory that it is about. WorkOS's SDK
allows three minutes between signing and checking. Six retries in three days.

https://workos.com/docs/events/data-syncing/webhooks
"""

from datetime import datetime
from typing import Unpack

from hookonce.providers import kit

scheme = kit.Hmac(
    header="workos-signature",
    key="v1",
    signed="{timestamp}.{body}",
    timestamp=kit.Timestamp(key="t", unit="ms", tolerance=kit.minutes(3)),
)


def _sign(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> dict[str, str]:
    signed = scheme.sign(body, secret, now, **options)
    return {name: value.replace(",", ", ") for name, value in signed.items()}


sign = kit.signer(_sign)
events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown("$.event"),
    account=kit.first("$.data.organization_id", "$.data.directory_id"),
    occurred_at="$.created_at",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(3),
    identity=kit.told_apart_by("$.id"),
    subject=kit.about(entity=("$.data.id",), version="$.created_at"),
    setup_url="https://dashboard.workos.com/webhooks",
)
