"""Auth0's log streams bring an authorization token, exactly as it was configured, and sign nothing.

The body is a JSON array, JSON lines or one object, by the stream's setting; each entry has its `log_id`, the
same on every attempt. The type is Auth0's short code, `$.data.type` (`s`, `fp`). After three attempts that
fail, and more of them, a stream is paused. Event streams are CloudEvents: use that provider.

https://auth0.com/docs/customize/log-streams/custom-log-streams
"""

from dataclasses import replace

from hookonce.providers import Delivery, Event, Rejected
from hookonce.providers.kit import (
    Sender,
    Token,
    field,
    first,
    json_body,
    many_events,
    signer,
    told_apart_by,
)

scheme = Token(header="authorization")
verify = scheme.verify
sign = signer(scheme.sign)
_entries = many_events(
    items="$",
    id=first(field("$.log_id"), field("$.data.log_id"), field("$._id")),
    type=first(field("$.data.type"), field("$.type")),
    account=first(field("$.data.tenant_name"), field("$.data.client_id")),
    occurred_at=first(field("$.data.date"), field("$.date")),
)


def events(delivery: Delivery) -> list[Event]:
    """The entries, each an event. Raises: Rejected(bad_body)."""
    try:
        json_body(delivery)
    except Rejected:
        lines = [line for line in delivery.body.split(b"\n") if line.strip()]
        delivery = replace(delivery, body=b"[" + b",".join(lines) + b"]")
    return _entries(delivery)


sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=None,
    horizon_unknown="after three failures the stream is paused until somebody resumes it",
    disables_after="three failures: the stream is paused",
    identity=told_apart_by("$.log_id", "$[*].log_id"),
    check_secret=scheme.check_secret,
    sample=_entries.sample,
    setup_url="https://manage.auth0.com/#/log-streams",
)
