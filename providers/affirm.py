"""Affirm signs `<t>.<body>` with HMAC-SHA512, in hex, in a header like `t=1767225600,v0=…`.

Events of a checkout are forms, those of a prequalification JSON. All events of one customer's visit share
`webhook_session_id`, so the event and its time are part of the id. Each attempt is signed anew.

https://docs.affirm.com/developers/v1.1-developer-reference/docs/about-webhooks
"""

from datetime import timedelta

from providers.kit import (
    Hmac,
    Timestamp,
    any_body,
    body_digest,
    field,
    first,
    fixed,
    joined,
    one_event,
    signer,
)

scheme = Hmac(
    header="x-affirm-signature",
    hash="sha512",
    key="v0",
    signed="{timestamp}.{body}",
    timestamp=Timestamp(key="t"),
)
verify, sign, CHECK, TOLERANCE = scheme.verify, signer(scheme.sign), scheme.check_secret, scheme.tolerance
_session, _event, _time = field("$.webhook_session_id"), field("$.event"), field("$.event_timestamp")
events = one_event(
    id=first(field("$.event_id"), joined(_session, _event, _time), joined(_session, _event), body_digest()),
    type=first(_event, fixed("unknown")),
    occurred_at=_time,
    read=any_body,
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://docs.affirm.com/developers/v1.1-developer-reference/docs/about-webhooks"
