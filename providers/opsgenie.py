"""Opsgenie signs nothing; its webhooks bring the custom header that they were set up with.

The secret is the whole value of `Authorization`; option `in` names another header, or "basic". There is no id: the
action, the alert and the time of its update are the event. The type is the action.

https://support.atlassian.com/opsgenie/docs/integrate-opsgenie-with-webhook/
"""

from hookonce.providers.kit import Sender, body_digest, field, first, fixed, join, one_event, told_apart_by
from hookonce.providers.kit.registry.token_sender import token_sender

events = one_event(
    id=first(join(field("$.action"), field("$.alert.alertId"), field("$.alert.updatedAt")), body_digest()),
    type=first(field("$.action"), fixed("unknown")),
    account=field("$.integrationId"),
    occurred_at=first(field("$.alert.updatedAt"), field("$.alert.createdAt")),
)
configure = token_sender(
    "opsgenie",
    "header:authorization",
    events=events,
    sender=Sender(
        id_is_signed=False,
        body_is_unsigned=True,
        retry_horizon=None,
        horizon_unknown="not known: no statement of its own is at hand",
        identity=told_apart_by(
            "$.action + $.alert.alertId + $.alert.updatedAt",
            "body",
            because="without a time of the update the whole body says what was done to the alert",
        ),
        setup_url="https://app.opsgenie.com/settings/integration/integration-list",
    ),
)
