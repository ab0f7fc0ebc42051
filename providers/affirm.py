"""Affirm signs `<t>.<body>` with HMAC-SHA512, in hex, in a header like `t=1767225600,v0=…`.

Events of a checkout are forms, those of a prequalification JSON. All events of one customer's visit share
`webhook_session_id`, so the event and its time are part of the id. Each attempt is signed anew.

https://docs.affirm.com/developers/v1.1-developer-reference/docs/about-webhooks
"""

from hookonce.providers import kit

_session = kit.field("$.webhook_session_id")
_event = kit.field("$.event")
_time = kit.field("$.event_timestamp")
events = kit.one_event(
    id=kit.or_body("$.event_id", kit.join(_session, _event, _time), kit.join(_session, _event)),
    type=kit.or_unknown(_event),
    occurred_at=_time,
    read=kit.json_or_form,
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header="x-affirm-signature",
        hash="sha512",
        key="v0",
        signed="{timestamp}.{body}",
        timestamp=kit.Timestamp(key="t"),
    ),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by(
        "$.event_id",
        "$.webhook_session_id + $.event + $.event_timestamp",
        new_on_retry=("signed time",),
        known_from="https://docs.affirm.com/developers/v1.1-developer-reference/docs/about-webhooks",
    ),
    setup_url="https://docs.affirm.com/developers/v1.1-developer-reference/docs/about-webhooks",
)
