"""Mailjet brings what stands as `user:password@` in its webhook's URL, as HTTP Basic; nothing is signed.

A URL without it may end with the secret (`in = "path"`). Events come one by one, or as a list if they are grouped.
There is no id: an event is all that is said of it, so what is alike to the second, the mail, the address, the link
and the client is one event.

https://dev.mailjet.com/email/guides/webhooks/
"""

from hookonce.providers.kit import Sender, data_digest, field, first, fixed, many_events, told_apart_by
from hookonce.providers.kit.registry.token_sender import token_sender

events = many_events(
    items="$",
    id=data_digest(),
    type=first(field("$.event"), fixed("unknown")),
    occurred_at=field("$.time"),
)
configure = token_sender(
    "mailjet",
    "basic",
    events=events,
    sender=Sender(
        id_is_signed=False,
        body_is_unsigned=True,
        retry_horizon=None,
        horizon_unknown="not known: no statement of its own is at hand",
        identity=told_apart_by(
            "$[*].time",
            "$.time",
            "body",
            because="what is alike in its second and in all that is said of it is one event",
        ),
        setup_url="https://app.mailjet.com/account/triggers",
    ),
)
