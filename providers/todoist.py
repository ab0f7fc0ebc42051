"""Todoist signs the body with HMAC-SHA256, in base64; the key is the app's client secret.

The id is `X-Todoist-Delivery-ID`, the same on every attempt; it is not signed. Events are those of everybody who has
installed the app, `$.user_id` says whose. Todoist tries three more times, every quarter of an hour.

https://developer.todoist.com/api/v1/#tag/Webhooks
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="x-todoist-hmac-sha256", encoding="base64")
sign = kit.signer(scheme.sign, event_id="x-todoist-delivery-id")
events = kit.one_event(
    id=kit.or_body("header x-todoist-delivery-id"),
    type=kit.or_unknown("$.event_name"),
    account="$.user_id",
    occurred_at="$.triggered_at",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by("header x-todoist-delivery-id"),
    holds_repeats="`$.triggered_at` is the moment of the event, to the microsecond",
    setup_url="https://app.todoist.com/app/settings/integrations/app-management",
)
