"""WorkOS signs `<ms>.<body>` with HMAC-SHA256, in hex: `WorkOS-Signature: t=<ms>, v1=<hex>`.

The id is `$.id`, the type `$.event`, the account the organization or directory that it is about. WorkOS's SDK
allows three minutes between signing and checking. Six retries in three days.

https://workos.com/docs/events/data-syncing/webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, Timestamp, body_digest, field, first, fixed, one_event, signer

scheme = Hmac(
    header="workos-signature",
    key="v1",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(key="t", unit="ms", tolerance=timedelta(minutes=3)),
)
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.event"), fixed("unknown")),
    account=first(field("$.data.organization_id"), field("$.data.directory_id")),
    occurred_at=field("$.created_at"),
)
RETRY_HORIZON = timedelta(days=3)
SETUP = "https://dashboard.workos.com/webhooks"
