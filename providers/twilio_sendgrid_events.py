"""SendGrid's Event Webhook signs `<time><body>` with ECDSA (P-256, SHA-256), in base64 of DER.

The secret is the verification key from the settings: base64, without PEM's lines. The body is a list of up to
a thousand events and ends with CR LF, which is signed too. Each has an `sg_event_id`, the same on every
attempt. SendGrid retries for a day and does not say whether with a new time, so the tolerance is a day; the
ids are signed. `twilio_sendgrid_inbound` is Inbound Parse.

https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features
"""

from hookonce.providers import kit

_HEADER = "x-twilio-email-event-webhook"
events = kit.many_events(items="$", id="$.sg_event_id", type="$.event", occurred_at="$.timestamp")
sender = kit.Sender(
    scheme=kit.Signed(
        header=f"{_HEADER}-signature",
        algorithm="ecdsa-sha256",
        signed="{timestamp}{body}",
        timestamp=kit.Timestamp(header=f"{_HEADER}-timestamp", tolerance=kit.hours(25)),
    ),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    retries_on=kit.UNSUCCESSFUL,
    identity=kit.told_apart_by("$[*].sg_event_id"),
    setup_url="https://app.sendgrid.com/settings/mail_settings",
)
