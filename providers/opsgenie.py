"""Opsgenie signs nothing; its webhooks bring the custom header that they were set up with.

The secret is the whole value of `Authorization`; option `in` names another header, or "basic". There is no id: the
action, the alert and the time of its update are the event. The type is the action.

https://support.atlassian.com/opsgenie/docs/integrate-opsgenie-with-webhook/
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body(kit.join("$.action", "$.alert.alertId", "$.alert.updatedAt")),
    type=kit.or_unknown("$.action"),
    account="$.integrationId",
    occurred_at=kit.first("$.alert.updatedAt", "$.alert.createdAt"),
)
configure = kit.token_sender(
    "opsgenie",
    "header:authorization",
    events=events,
    sender=kit.Sender(
        id_is_signed=False,
        retry_horizon="unknown (no vendor documentation found)",
        identity=kit.told_apart_by(
            "$.action + $.alert.alertId + $.alert.updatedAt",
            "body",
            because="without a time of the update the whole body says what was done to the alert",
        ),
        setup_url="https://app.opsgenie.com/settings/integration/integration-list",
    ),
)
