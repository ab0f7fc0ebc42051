"""Deepgram brings what stands as `user:password@` in the callback's URL, as HTTP Basic; nothing is signed.

It can send back a secret from the request instead (`extra=callback_secret:…`), then `in =
"$.metadata.extra.callback_secret"`. The header `dg-token` is not supported any more. The id of a recording is
`$.metadata.request_id`, the one that the request was answered with; of a stream, whose results share it, each
message is known by its contents. A callback is tried again ten times, 30 seconds apart, unless the answer is 2xx.

https://developers.deepgram.com/docs/callback
"""

from hookonce.providers import kit

_secret = "$.metadata.extra.callback_secret"  # noqa: S105  a place
_request = kit.field("$.metadata.request_id")
events = kit.one_event(
    id=kit.or_body(kit.when_matches("$.metadata.created", ".+", _request), kit.data_digest(_secret)),
    type=kit.first("$.type", kit.fixed("transcript")),
    account="$.metadata.project_uuid",
    occurred_at=kit.first("$.metadata.created", "$.created"),
)
configure = kit.token_sender(
    "deepgram",
    "basic",
    events=events,
    sender=kit.Sender(
        id_is_signed=False,
        retry_horizon=kit.minutes(10),
        identity=kit.told_apart_by(
            "$.start", "$.metadata.request_id", "body", because="each piece of a stream has its own beginning"
        ),
        setup_url="https://console.deepgram.com/",
    ),
)
