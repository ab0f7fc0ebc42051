"""Postmark brings a user name and password (HTTP Basic) from the webhook's URL, and signs nothing.

The secret is `user:password`. Bounces and complaints have an id of their own, `$.ID`; for the rest it is made of
kind, message, recipient and time, and for an open or a click of all that is told of it: two links may be clicked in
one second. Inbound mail has no `RecordType`; its type is Inbound. A 403 ends the attempts, which otherwise go on for
hours.

https://postmarkapp.com/developer/webhooks/webhooks-overview
"""

from hookonce.providers import kit

_kind = kit.first("$.RecordType", kit.fixed("Inbound"))
_at = kit.first("$.DeliveredAt", "$.ReceivedAt", "$.ChangedAt", "$.BouncedAt")
_known = kit.join(_kind, "$.MessageID", "$.Recipient", _at)
events = kit.one_event(
    id=kit.or_body(
        "$.ID",
        kit.when_matches(_kind, "Click|Open", kit.join(_known, kit.body_digest())),
        _known,
        kit.join(_kind, "$.MessageID"),
    ),
    type=_kind,
    account=kit.first("$.ServerID", "$.MessageStream"),
    occurred_at=kit.first(_at, "$.Date"),
)
sender = kit.Sender(
    scheme=kit.Token(basic=True),
    id_is_signed=False,
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by(
        "$.ID",
        "$.RecordType + $.MessageID + $.OriginalLink",
        "$.RecordType + $.MessageID + $.ReceivedAt",
        "$.MessageID",
    ),
    max_body=50 << 20,  # 35 MB of attachments, in base64
    setup_url="https://account.postmarkapp.com/servers",
)
