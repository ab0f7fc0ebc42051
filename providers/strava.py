"""Strava proves nothing: a secret at the end of the URL tells its events from others.

Its probe of a new URL brings `hub.verify_token`, which must be the same secret, and wants `hub.challenge` back, in
JSON. There is no id: all that the body says is the event, whose time is in seconds. Strava waits 2 s, and tries
three times in all.

https://developers.strava.com/docs/webhooks/
"""

from collections.abc import Sequence
from datetime import timedelta

from hookonce.providers import Delivery, Reply
from hookonce.providers.kit import (
    Sender,
    Token,
    data_digest,
    field,
    first,
    fixed,
    join,
    json_reply,
    one_event,
    query_parameter,
    signer,
    subscribed,
    told_apart_by,
)

scheme = Token(path=True)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=data_digest(),
    type=first(join(field("$.object_type"), field("$.aspect_type"), by="."), fixed("unknown")),
    account=field("$.owner_id"),
    occurred_at=field("$.event_time"),
)


def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
    """Send a challenge back to who knows the secret; 403 to others, None for anything else."""
    reply = subscribed(delivery, secrets)
    right = reply is not None and reply.body
    return json_reply({"hub.challenge": query_parameter(delivery, "hub.challenge")}) if right else reply


sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by("$.object_type + $.object_id + $.aspect_type + $.event_time + $.owner_id"),
    unauthenticated=True,
    check_secret=scheme.check_secret,
    handshake=handshake,
    deliver=scheme.deliver,
    setup_url="https://www.strava.com/settings/api",
)
