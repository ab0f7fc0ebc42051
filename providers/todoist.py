"""Todoist signs the body with HMAC-SHA256, in base64; the key is the app's client secret.

The id is `X-Todoist-Delivery-ID`, the same on every attempt; it is not signed. Events are those of everybody who has
installed the app, `$.user_id` says whose. Todoist tries three more times, every quarter of an hour.

https://developer.todoist.com/api/v1/#tag/Webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-todoist-hmac-sha256", encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign, event_id="x-todoist-delivery-id")
events = one_event(
    id=first(header("x-todoist-delivery-id"), body_digest()),
    type=first(field("$.event_name"), fixed("unknown")),
    account=field("$.user_id"),
    occurred_at=field("$.triggered_at"),
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by("header x-todoist-delivery-id"),
    check_secret=scheme.check_secret,
    setup_url="https://app.todoist.com/app/settings/integrations/app-management",
)
