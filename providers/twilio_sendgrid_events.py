"""SendGrid's Event Webhook signs `<time><body>` with ECDSA (P-256, SHA-256), in base64 of DER.

The secret is the verification key from the settings: base64, without PEM's lines. The body is a list of up to
a thousand events and ends with CR LF, which is signed too. Each has an `sg_event_id`, the same on every
attempt. SendGrid retries for a day and does not say whether with a new time, so the tolerance is a day; the
ids are signed. Inbound Parse is another webhook.

https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features
"""

from datetime import timedelta

from hookonce.providers.kit import (
    UNSUCCESSFUL,
    Sender,
    Timestamp,
    field,
    many_events,
    signer,
    told_apart_by,
)
from hookonce.providers.kit.schemes.public_key_signature import Signed

_HEADER = "x-twilio-email-event-webhook"
scheme = Signed(
    header=f"{_HEADER}-signature",
    algorithm="ecdsa-sha256",
    signed="{timestamp}{body}",
    timestamp=Timestamp(header=f"{_HEADER}-timestamp", tolerance=timedelta(hours=25)),
)
verify = scheme.verify
sign = signer(scheme.sign)
events = many_events(
    items="$", id=field("$.sg_event_id"), type=field("$.event"), occurred_at=field("$.timestamp")
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    retries_on=UNSUCCESSFUL,
    identity=told_apart_by("$[*].sg_event_id"),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://app.sendgrid.com/settings/mail_settings",
)
