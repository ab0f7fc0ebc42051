"""Postmark brings a user name and password (HTTP Basic) from the webhook's URL, and signs nothing.

The secret is `user:password`. Bounces and complaints have an id of their own, `$.ID`; for the rest it is made
of kind, message, recipient and time, of an open or a click with all that is told of it: two links may be clicked in
one second. Inbound mail has no `RecordType`; its type is Inbound. A 403 ends the
attempts, which otherwise go on for hours.

https://postmarkapp.com/developer/webhooks/webhooks-overview
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    Token,
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

scheme = Token(basic=True)
verify = scheme.verify
sign = signer(scheme.sign)
_kind = first(field("$.RecordType"), fixed("Inbound"))
_at = first(field("$.DeliveredAt"), field("$.ReceivedAt"), field("$.ChangedAt"), field("$.BouncedAt"))
_known = join(_kind, field("$.MessageID"), field("$.Recipient"), _at)
events = one_event(
    id=first(
        field("$.ID"),
        when_matches(_kind, "Click|Open", join(_known, body_digest())),
        _known,
        join(_kind, field("$.MessageID")),
        body_digest(),
    ),
    former=(when_matches(_kind, "Click|Open", _known),),
    type=_kind,
    account=first(field("$.ServerID"), field("$.MessageStream")),
    occurred_at=first(_at, field("$.Date")),
)

sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(days=2),
    identity=told_apart_by(
        "$.ID",
        "$.RecordType + $.MessageID + $.OriginalLink",
        "$.RecordType + $.MessageID + $.ReceivedAt",
        "$.MessageID",
    ),
    check_secret=scheme.check_secret,
    setup_url="https://account.postmarkapp.com/servers",
)
