"""Typeform signs the body with HMAC-SHA256, in base64 behind `sha256=` (others put hex behind that).

The id is `$.event_id`, the same on every retry, the account the form. Three immediate retries, then one every
few minutes for up to ten hours; 404 and 410 switch the webhook off.

https://www.typeform.com/developers/webhooks/secure-your-webhooks/
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.event_id", "$.form_response.token"),
    type=kit.or_unknown("$.event_type"),
    account="$.form_response.form_id",
    occurred_at="$.form_response.submitted_at",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="typeform-signature", prefix="sha256=", encoding="base64"),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    disables_after="a 404 or a 410",
    identity=kit.told_apart_by("$.event_id", "$.form_response.token"),
    setup_url="https://www.typeform.com/developers/webhooks/",
)
