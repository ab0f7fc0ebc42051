"""MailerSend signs the body with HMAC-SHA256, in hex, in a header that is called just `Signature`.

The id is that of the activity, `$.data.id`. The first open or click is told twice, the second time as `opened_unique`
or `clicked_unique`; whether with an activity of its own is not said, so the type goes with that id. What is no
activity (a verified identity, a finished list) has there the id of what it is about: type and time go with it.
Inbound routes have a secret of their own.

https://developers.mailersend.com/api/v1/webhooks.html#security
"""

from hookonce.providers import kit

_type = kit.field("$.type")
events = kit.one_event(
    id=kit.or_body(
        kit.when_matches(_type, r"activity\..+_unique", kit.join(_type, "$.data.id")),
        kit.when_matches(_type, r"activity\..+", "$.data.id"),
        kit.join(_type, "$.data.id", "$.created_at"),
    ),
    type=kit.or_unknown(_type),
    account="$.domain_id",
    occurred_at=kit.first("$.data.created_at", "$.created_at"),
)
sender = kit.Sender(
    scheme=kit.Hmac(header="signature"),
    id_is_signed=True,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by(
        "$.data.id", "body", because="without an id of its own nothing is known of an event"
    ),
    setup_url="https://app.mailersend.com/domains",
)
