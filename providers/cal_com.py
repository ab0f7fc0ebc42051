"""Cal.com signs the body with HMAC-SHA256, in hex; without a secret it sends a word that is no signature.

There is no id: it is made of the trigger, the booking's uid, and when the event was made. A template on the webhook
can make any body of it, a form or plain text too (`sendPayload.ts`): what then has no such fields is known by its
fingerprint. A test has the trigger `PING`.

https://cal.com/docs/developing/guides/automation/webhooks
"""

from datetime import timedelta

from providers.kit import Hmac, any_body_or_none, body_digest, field, first, fixed, joined, one_event, signer

scheme = Hmac(header="x-cal-signature-256")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
events = one_event(
    id=first(joined(field("$.triggerEvent"), field("$.payload.uid"), field("$.createdAt")), body_digest()),
    type=first(field("$.triggerEvent"), fixed("unknown")),
    account=first(field("$.payload.organizer.id"), field("$.payload.organizer.email")),
    occurred_at=field("$.createdAt"),
    read=any_body_or_none,
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://app.cal.com/settings/developer/webhooks"
