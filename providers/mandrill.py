"""Mandrill (Mailchimp Transactional) signs the URL and the form's fields, HMAC-SHA1 in base64.

The URL is the one that was registered, query included; of each field its name and its decoded value follow, sorted.
All events are in the field `mandrill_events`, a list. Events of one message share `_id`, so an event's id is `_id`,
what happened, and when, of a click the link and who clicked, since whoever scans a mail opens all of its links within
a second, and of an open who opened; those without `_id` (inbound mail, changes of the block list) are known by their
content. The URL is asked by HEAD and then with an empty list, which is signed with a key that nobody has: a delivery
of no events is answered and nothing is stored.

https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/
"""

from collections.abc import Sequence
from datetime import timedelta

from hookonce.providers import Delivery, Rejected, Reply
from hookonce.providers.kit import (
    FORM,
    Hmac,
    Sender,
    answer_head,
    digest,
    field,
    first,
    join,
    json_in_form,
    many_events,
    signer,
    told_apart_by,
    when_matches,
)

scheme = Hmac(header="x-mandrill-signature", hash="sha1", encoding="base64", signed="{url}{params}")
verify = scheme.verify
sign = signer(scheme.sign, content=FORM)
_known = join(field("$._id"), field("$.event"), field("$.ts"))
_READER = ("$.ip", "$.user_agent")
_CLICK = ("$.url", "$.ip", "$.user_agent", "$.msg.clicks")
events = many_events(
    items="$",
    form="mandrill_events",
    id=first(
        when_matches(field("$.url"), ".+", join(_known, digest(*map(field, _CLICK)))),
        when_matches(
            join(field("$.event"), first(*map(field, _READER))),
            "(?s)open:.+",
            join(_known, digest(*map(field, _READER))),
        ),
        _known,
        digest(field("$")),
    ),
    former=(_known,),
    type=first(field("$.event"), field("$.type")),
    occurred_at=field("$.ts"),
)


_events_in = json_in_form("mandrill_events")


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer HEAD, and deliveries of no events, however they are signed; None for anything else."""
    try:
        is_empty = delivery.body.startswith(b"mandrill_events=") and _events_in(delivery) == []
    except Rejected:
        return None
    return Reply() if is_empty else answer_head(delivery, secrets)


sender = Sender(
    id_is_signed=True,
    signs_url=True,
    retry_horizon=timedelta(days=2),
    identity=told_apart_by(
        "$.mandrill_events[*]._id + $.mandrill_events[*].event + $.mandrill_events[*].ts",
        "$.mandrill_events[*].ts",
    ),
    max_body=5 << 20,  # it is parsed before it is known to be genuine
    check_secret=scheme.check_secret,
    handshake=handshake,
    setup_url="https://mandrillapp.com/settings/webhooks",
)
