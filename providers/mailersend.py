"""MailerSend signs the body with HMAC-SHA256, in hex, in a header that is called just `Signature`.

The id is that of the activity, `$.data.id`. The first open or click is told twice, the second time as `opened_unique`
or `clicked_unique`; whether with an activity of its own is not said, so the type goes with that id. What is no
activity (a verified identity, a finished list) has there the id of what it is about: type and time go with it.
Inbound routes have a secret of their own.

https://developers.mailersend.com/api/v1/webhooks.html#security
"""

from hookonce.providers.kit import (
    Hmac,
    Sender,
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

scheme = Hmac(header="signature")
verify = scheme.verify
sign = signer(scheme.sign)
_type = field("$.type")
events = one_event(
    id=first(
        when_matches(_type, r"activity\..+_unique", join(_type, field("$.data.id"))),
        when_matches(_type, r"activity\..+", field("$.data.id")),
        join(_type, field("$.data.id"), field("$.created_at")),
        body_digest(),
    ),
    former=(when_matches(_type, r"activity\..+_unique", field("$.data.id")),),
    type=first(_type, fixed("unknown")),
    account=field("$.domain_id"),
    occurred_at=first(field("$.data.created_at"), field("$.created_at")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by(
        "$.data.id", "body", because="without an id of its own nothing is known of an event"
    ),
    check_secret=scheme.check_secret,
    setup_url="https://app.mailersend.com/domains",
)
