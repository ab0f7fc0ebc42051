"""Affirm signs `<t>.<body>` with HMAC-SHA512, in hex, in a header like `t=1767225600,v0=…`.

Events of a checkout are forms, those of a prequalification JSON. All events of one customer's visit share
`webhook_session_id`, so the event and its time are part of the id. Each attempt is signed anew.

https://docs.affirm.com/developers/v1.1-developer-reference/docs/about-webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    join,
    json_or_form,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="x-affirm-signature",
    hash="sha512",
    key="v0",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(key="t"),
)
verify = scheme.verify
sign = signer(scheme.sign)
_session = field("$.webhook_session_id")
_event = field("$.event")
_time = field("$.event_timestamp")
events = one_event(
    id=first(field("$.event_id"), join(_session, _event, _time), join(_session, _event), body_digest()),
    type=first(_event, fixed("unknown")),
    occurred_at=_time,
    read=json_or_form,
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by(
        "$.event_id",
        "$.webhook_session_id + $.event + $.event_timestamp",
        new_on_retry=("signed time",),
        known_from="https://docs.affirm.com/developers/v1.1-developer-reference/docs/about-webhooks",
    ),
    tolerance=scheme.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://docs.affirm.com/developers/v1.1-developer-reference/docs/about-webhooks",
)
