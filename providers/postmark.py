"""Postmark brings a user name and password (HTTP Basic) from the webhook's URL, and signs nothing.

The secret is `user:password`. Bounces and complaints have an id of their own, `$.ID`; for the rest it is made
of kind, message, recipient and time. Inbound mail has no `RecordType`; its type is Inbound. A 403 ends the
attempts, which otherwise go on for hours.

https://postmarkapp.com/developer/webhooks/webhooks-overview
"""

from datetime import timedelta

from providers.kit import Token, body_digest, field, first, fixed, joined, one_event, signer

scheme = Token(basic=True)
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
_kind = first(field("$.RecordType"), fixed("Inbound"))
_at = first(field("$.DeliveredAt"), field("$.ReceivedAt"), field("$.ChangedAt"), field("$.BouncedAt"))
events = one_event(
    id=first(
        field("$.ID"),
        joined(_kind, field("$.MessageID"), field("$.Recipient"), _at),
        joined(_kind, field("$.MessageID")),
        body_digest(),
    ),
    type=_kind,
    account=first(field("$.ServerID"), field("$.MessageStream")),
    occurred_at=first(_at, field("$.Date")),
)
ID_IS_SIGNED = False
BODY_IS_UNSIGNED = True
RETRY_HORIZON = timedelta(days=2)
SETUP = "https://account.postmarkapp.com/servers"
