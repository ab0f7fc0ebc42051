"""Mailjet brings what stands as `user:password@` in its webhook's URL, as HTTP Basic; nothing is signed.

A URL without it may end with the secret (`in = "path"`). Events come one by one, or as a list if they are grouped.
There is no id: an event is all that is said of it, so what is alike to the second, the mail, the address, the link
and the client is one event.

https://dev.mailjet.com/email/guides/webhooks/
"""

from hookonce.providers import kit

events = kit.many_events(
    items="$", id=kit.data_digest(), type=kit.or_unknown("$.event"), occurred_at="$.time"
)
configure = kit.token_sender(
    "mailjet",
    "basic",
    events=events,
    sender=kit.Sender(
        id_is_signed=False,
        retry_horizon="unknown (no vendor documentation found)",
        identity=kit.told_apart_by(
            "$[*].time",
            "$.time",
            "body",
            because="what is alike in its second and in all that is said of it is one event",
        ),
        setup_url="https://app.mailjet.com/account/triggers",
    ),
)
