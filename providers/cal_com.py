"""Cal.com signs the body with HMAC-SHA256, in hex; without a secret it sends a word that is no signature.

There is no id: it is made of the trigger, the booking's uid, and when the event was made. A template on the webhook
can make any body of it, a form or plain text too (`sendPayload.ts`): what then has no such fields is known by its
fingerprint and the minute of receipt. A test has the trigger `PING`.

https://cal.com/docs/developing/guides/automation/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    any_body_or_none,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
    when_matches,
)

scheme = Hmac(header="x-cal-signature-256")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(
        join(field("$.triggerEvent"), field("$.payload.uid"), field("$.createdAt")),
        when_matches(field("$.createdAt"), ".+", body_digest()),
    ),
    undated=body_digest(),
    type=first(field("$.triggerEvent"), fixed("unknown")),
    account=first(field("$.payload.organizer.id"), field("$.payload.organizer.email")),
    occurred_at=field("$.createdAt"),
    read=any_body_or_none,
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("$.triggerEvent + $.payload.uid + $.createdAt", "$.createdAt", "receipt"),
    id_period=timedelta(minutes=1),
    check_secret=scheme.check_secret,
    setup_url="https://app.cal.com/settings/developer/webhooks",
)
