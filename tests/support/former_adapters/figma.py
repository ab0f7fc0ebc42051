"""Figma brings the `passcode` that a webhook was made with, in every body, and signs nothing.

The passcode is kept with the event, and a new one makes no event new. There is no id: all that the body says
besides is the event, its time in seconds included. Figma tries three more times, within four hours; an answer of
400 would switch the webhook off.

https://developers.figma.com/docs/rest-api/webhooks/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    Token,
    data_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Token(field="$.passcode")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=data_digest("$.passcode"),
    type=first(field("$.event_type"), fixed("unknown")),
    account=field("$.webhook_id"),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(hours=5),
    identity=told_apart_by("$.webhook_id + $.event_type + $.timestamp"),
    max_body=1 << 20,  # it is parsed before it is known to be genuine
    check_secret=scheme.check_secret,
    deliver=scheme.deliver,
    setup_url="https://developers.figma.com/docs/rest-api/webhooks/",
)
