"""Statuspage proves nothing: a secret at the end of the URL tells its notifications from others.

Of an incident its latest update and the time of its change are the event, of a component its update. The time at which
a notification was made is new each time. The type is the incident's status behind `incident.`, or `component_update`.

https://support.atlassian.com/statuspage/docs/enable-webhook-notifications/
"""

from hookonce.providers.kit import (
    Sender,
    Token,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
    when_matches,
)

scheme = Token(path=True)
verify = scheme.verify
sign = signer(scheme.sign)
_MADE = "$.meta.generated_at"
_update = field("$.component_update.id")
_changed = field("$.incident.updated_at")
events = one_event(
    id=first(
        join(field("$.incident.id"), field("$.incident.incident_updates[0].id"), _changed),
        join(fixed("component_update"), _update),
        body_digest(_MADE),
    ),
    type=first(
        join(fixed("incident"), field("$.incident.status"), by="."),
        when_matches(_update, ".*", fixed("component_update")),
        fixed("unknown"),
    ),
    account=field("$.page.id"),
    occurred_at=first(_changed, field("$.component_update.created_at")),
)

sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=None,
    horizon_unknown="not known: no statement of its own is at hand",
    identity=told_apart_by(
        "$.incident.id + $.incident.incident_updates[0].id + $.incident.updated_at",
        "$.component_update.id",
        new_on_retry=(_MADE,),
    ),
    volatile=(_MADE,),
    unauthenticated=True,
    check_secret=scheme.check_secret,
    deliver=scheme.deliver,
    setup_url="https://support.atlassian.com/statuspage/docs/enable-webhook-notifications/",
)
