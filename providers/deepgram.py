"""Deepgram brings what stands as `user:password@` in the callback's URL, as HTTP Basic; nothing is signed.

It can send back a secret from the request instead (`extra=callback_secret:…`), then `in =
"$.metadata.extra.callback_secret"`. The header `dg-token` is not supported any more. The id of a recording is
`$.metadata.request_id`, the one that the request was answered with; of a stream, whose results share it, each
message is known by its contents. A callback is tried again ten times, 30 seconds apart, unless the answer is 2xx.

https://developers.deepgram.com/docs/callback
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    body_digest,
    data_digest,
    field,
    first,
    fixed,
    one_event,
    told_apart_by,
    when_matches,
)
from hookonce.providers.kit.registry.token_sender import token_sender

_secret = "$.metadata.extra.callback_secret"  # noqa: S105  a place
_request = field("$.metadata.request_id")
events = one_event(
    id=first(
        when_matches(field("$.metadata.created"), ".+", _request),
        data_digest(_secret),
        body_digest(),
    ),
    type=first(field("$.type"), fixed("transcript")),
    account=field("$.metadata.project_uuid"),
    occurred_at=first(field("$.metadata.created"), field("$.created")),
)
configure = token_sender(
    "deepgram",
    "basic",
    events=events,
    sender=Sender(
        id_is_signed=False,
        body_is_unsigned=True,
        retry_horizon=timedelta(minutes=10),
        identity=told_apart_by(
            "$.start",
            "$.metadata.request_id",
            "body",
            because="each piece of a stream has its own beginning",
        ),
        setup_url="https://console.deepgram.com/",
    ),
)
