"""Mandrill (Mailchimp Transactional) signs the URL and the form's fields, HMAC-SHA1 in base64.

The URL is the one that was registered, query included; of each field its name and its decoded value follow,
sorted. All events are in the field `mandrill_events`, a list. Events of one message share `_id`, so an event's
id is `_id`, what happened, and when; those without `_id` (inbound mail, changes of the block list) are known by
their content. The URL is asked by HEAD and then with an empty list, which is signed with a key that nobody
has: a delivery of no events is answered and nothing is stored.

https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/
"""

from collections.abc import Sequence
from datetime import timedelta

from providers import Delivery, Rejected, Reply
from providers.kit import FORM, Hmac, digest, field, first, joined, many_events, signer
from providers.kit.probing import answer_head

scheme = Hmac(header="x-mandrill-signature", hash="sha1", encoding="base64", signed="{url}{params}")
verify, sign, CHECK = scheme.verify, signer(scheme.sign, content=FORM), scheme.check_secret
events = many_events(
    items="$",
    form="mandrill_events",
    id=first(joined(field("$._id"), field("$.event"), field("$.ts")), digest(field("$"))),
    type=first(field("$.event"), field("$.type")),
    occurred_at=field("$.ts"),
)
MAX_BODY = 5 << 20  # it is parsed before it is known to be genuine
RETRY_HORIZON = timedelta(days=2)
SIGNS_URL = True
SETUP = "https://mandrillapp.com/settings/webhooks"


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Answer HEAD, and deliveries of no events, however they are signed; None for anything else."""
    try:
        is_empty = delivery.body.startswith(b"mandrill_events=") and not events(delivery)
    except Rejected:
        return None
    return Reply() if is_empty else answer_head(delivery, secrets)
