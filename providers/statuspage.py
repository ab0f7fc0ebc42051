"""Statuspage proves nothing: a secret at the end of the URL tells its notifications from others.

An incident is known by its latest update and the time of its change, a component by its update. The time at which a
notification was made is new on each attempt. The type is the incident's status behind `incident.`, or
`component_update`.

https://support.atlassian.com/statuspage/docs/enable-webhook-notifications/
"""

from hookonce.providers import kit

scheme = kit.Token(path=True)
_MADE = "$.meta.generated_at"
_update = kit.field("$.component_update.id")
_changed = kit.field("$.incident.updated_at")
events = kit.one_event(
    id=kit.first(
        kit.join("$.incident.id", "$.incident.incident_updates[0].id", _changed),
        kit.join(kit.fixed("component_update"), _update),
        kit.body_digest(_MADE),
    ),
    type=kit.or_unknown(
        kit.join(kit.fixed("incident"), "$.incident.status", by="."),
        kit.when_matches(_update, ".*", kit.fixed("component_update")),
    ),
    account="$.page.id",
    occurred_at=kit.first(_changed, "$.component_update.created_at"),
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by(
        "$.incident.id + $.incident.incident_updates[0].id + $.incident.updated_at",
        "$.component_update.id",
        new_on_retry=(_MADE,),
    ),
    volatile=(_MADE,),
    setup_url="https://support.atlassian.com/statuspage/docs/enable-webhook-notifications/",
)
