"""Cal.com signs the body with HMAC-SHA256, in hex; without a secret it sends a word that is no signature.

There is no id: it is made of the trigger, the booking's uid, and when the event was made. A template on the webhook
can make any body of it, a form or plain text too (`sendPayload.ts`): what then has no such fields is known by its
fingerprint and the minute of receipt. A test has the trigger `PING`.

https://cal.com/docs/developing/guides/automation/webhooks
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.first(
        kit.join("$.triggerEvent", "$.payload.uid", "$.createdAt"),
        kit.when_matches("$.createdAt", ".+", kit.body_digest()),
    ),
    undated=kit.body_digest(),
    type=kit.or_unknown("$.triggerEvent"),
    account=kit.first("$.payload.organizer.id", "$.payload.organizer.email"),
    occurred_at="$.createdAt",
    read=kit.any_body_or_none,
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-cal-signature-256"),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.triggerEvent + $.payload.uid + $.createdAt", "$.createdAt", "receipt"),
    id_period=kit.minutes(1),
    subject=kit.about(entity=("$.payload.uid",), version="$.createdAt"),
    setup_url="https://app.cal.com/settings/developer/webhooks",
)
