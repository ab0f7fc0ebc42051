"""Auth0's log streams bring an authorization token, exactly as it was configured, and sign nothing.

The body is a JSON array, JSON lines or one object, by the stream's setting; each entry has its `log_id`, the
same on every attempt. The type is Auth0's short code, `$.data.type` (`s`, `fp`). After three attempts that
fail, and more of them, a stream is paused. Event streams are CloudEvents: use that provider.

https://auth0.com/docs/customize/log-streams/custom-log-streams
"""

from dataclasses import replace

from hookonce.providers import Delivery, Event, Rejected, kit

_entries = kit.many_events(
    items="$",
    id=kit.first("$.log_id", "$.data.log_id", "$._id"),
    type=kit.first("$.data.type", "$.type"),
    account=kit.first("$.data.tenant_name", "$.data.client_id"),
    occurred_at=kit.first("$.data.date", "$.date"),
)


def events(delivery: Delivery) -> list[Event]:
    """The entries, each an event. Raises: Rejected(bad_body)."""
    try:
        kit.json_body(delivery)
    except Rejected:
        lines = [line for line in delivery.body.split(b"\n") if line.strip()]
        delivery = replace(delivery, body=b"[" + b",".join(lines) + b"]")
    return _entries(delivery)


sender = kit.Sender(
    scheme=kit.Token(header="authorization"),
    id_is_signed=False,
    retry_horizon="after three failures the stream is paused until somebody resumes it",
    disables_after="three failures: the stream is paused",
    identity=kit.told_apart_by("$.log_id", "$[*].log_id"),
    sample=_entries.sample,
    setup_url="https://manage.auth0.com/#/log-streams",
)
