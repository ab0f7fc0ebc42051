"""Mandrill (Mailchimp Transactional) signs the URL and the form's fields, HMAC-SHA1 in base64.

The URL is the one that was registered, query included; of each field its name and its decoded value follow, sorted.
All events are in the field `mandrill_events`, a list. Those of one message share its `_id`, so an event's id is made
of that, what happened, and when; for a click also of the link and the reader, since a mail scanner opens all links
within a second; for an open also of the reader. Events without `_id` (inbound mail, changes of the block list) are
known by their content. The URL is asked by HEAD and then with an empty list, which is signed with a key that nobody
has: a delivery of no events is answered and nothing is stored.

https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/
"""

from collections.abc import Sequence

from hookonce.providers import Delivery, Rejected, Reply, kit

scheme = kit.Hmac(header="x-mandrill-signature", hash="sha1", encoding="base64", signed="{url}{params}")
sign = kit.signer(scheme.sign, content=kit.FORM)
_happened = kit.join("$._id", "$.event", "$.ts")
_READER = ("$.ip", "$.user_agent")
_CLICK = ("$.url", "$.ip", "$.user_agent", "$.msg.clicks")
events = kit.many_events(
    items="$",
    form="mandrill_events",
    id=kit.first(
        kit.when_matches("$.url", ".+", kit.join(_happened, kit.digest(*map(kit.field, _CLICK)))),
        kit.when_matches(
            kit.join("$.event", kit.first(*map(kit.field, _READER))),
            "(?s)open:.+",
            kit.join(_happened, kit.digest(*map(kit.field, _READER))),
        ),
        _happened,
        kit.digest("$"),
    ),
    type=kit.first("$.event", "$.type"),
    occurred_at="$.ts",
)


_MAX_PROBE_BYTES = 100
_events_in = kit.json_in_form("mandrill_events")


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer HEAD, and deliveries of no events, however they are signed; None for anything else."""
    is_short = len(delivery.body) <= _MAX_PROBE_BYTES and delivery.body.startswith(b"mandrill_events=")
    try:
        is_empty = is_short and _events_in(delivery) == []
    except Rejected:
        return None
    return Reply() if is_empty else kit.answer_head(delivery, secrets)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    signs_url=True,
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by(
        "$.mandrill_events[*]._id + $.mandrill_events[*].event + $.mandrill_events[*].ts",
        "$.mandrill_events[*].ts",
    ),
    max_body=25 << 20,  # inbound mail with its attachments
    setup_url="https://mandrillapp.com/settings/webhooks",
)
