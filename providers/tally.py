"""Tally signs the body with HMAC-SHA256, in base64.

The id is `$.eventId`, the type `$.eventType` (FORM_RESPONSE). Tally tries five more times: after 5 minutes, half an
hour, an hour, six hours and a day. A webhook without a signing secret is not signed, and refused.

https://tally.so/help/webhooks
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.eventId"),
    type=kit.or_unknown("$.eventType"),
    account="$.data.formId",
    occurred_at="$.createdAt",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="tally-signature", encoding="base64"),
    id_is_signed=True,
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by("$.eventId"),
    setup_url="https://tally.so/dashboard",
)
