"""SendGrid's Inbound Parse signs `<time><body>` with ECDSA (P-256, SHA-256), in base64 of DER, of a multipart form.

A security policy with a signature, attached to the parse setting, makes it sign; the secret is the policy's public key,
in base64 without PEM's lines. (A policy with OAuth alone is not verified here.) The body is a mail: its parts, or the
raw message in the field `email`, of which the event's data have the first 64 KB. There is no id: the mail's headers, or
that beginning, and its envelope are the event. After a 5xx SendGrid tries again for 72 hours; after any other refusal
the mail is gone.

https://www.twilio.com/docs/sendgrid/for-developers/parsing-email/securing-your-parse-webhooks
"""

from typing import Final

from hookonce.providers import Delivery, kit

_HEADER: Final = "x-twilio-email-event-webhook"
_BEGINNING: Final = {"email": 64 * 1024}


def _read(delivery: Delivery) -> dict[str, str]:
    """Return the texts of the form, of a raw message its beginning. Raises: Rejected(too_large)."""
    return kit.read_once(delivery, "multipart", lambda body: kit.multipart.parts_in(body, _BEGINNING))


events = kit.one_event(
    id=kit.or_body(kit.digest(kit.first("$.headers", "$.email"), "$.envelope")),
    type=kit.fixed("inbound"),
    read=_read,
)


def sample(event_id: str, kind: str) -> bytes:
    """Return a mail with this id."""
    del kind
    return kit.multipart.one_field("headers", f"Message-ID: <{event_id}@example.com>\n".encode())[1]


sender = kit.Sender(
    scheme=kit.Signed(
        header=f"{_HEADER}-signature",
        algorithm="ecdsa-sha256",
        signed="{timestamp}{body}",
        timestamp=kit.Timestamp(header=f"{_HEADER}-timestamp", tolerance=kit.hours(73)),
    ),
    id_is_signed=True,
    retry_horizon=kit.days(3),
    retries_on=kit.SERVER_ERRORS,
    disables_after=kit.NEVER,
    identity=kit.told_apart_by(
        "$.headers + $.envelope",
        "$.email + $.envelope",
        "body",
        because="a form without a mail's headers is known by all it says",
    ),
    max_body=31 << 20,  # a mail of 30 MB, and what the form puts around it
    setup_url="https://app.sendgrid.com/settings/parse",
)
