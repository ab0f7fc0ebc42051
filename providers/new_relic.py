"""New Relic signs nothing; a webhook destination brings a bearer token, or user name and password.

The secret is the bearer token; option `in` takes "basic" or a header. The body is a template of the user's: the default
one has the issue's id, state and the time of its update, which together are the event. Without them equal bodies are
one event. The type is the state.

https://docs.newrelic.com/docs/alerts/get-notified/notification-integrations/#webhook
"""

from hookonce.providers.kit import Sender, body_digest, field, first, fixed, join, one_event, told_apart_by
from hookonce.providers.kit.registry.token_sender import token_sender

_parts = (field("$.id"), field("$.state"), field("$.trigger"), field("$.updatedAt"))
events = one_event(
    id=first(join(*_parts), body_digest()),
    type=first(field("$.state"), fixed("unknown")),
    account=field("$.workflowName"),
    occurred_at=field("$.updatedAt"),
)
configure = token_sender(
    "new_relic",
    "bearer",
    events=events,
    sender=Sender(
        id_is_signed=False,
        body_is_unsigned=True,
        retry_horizon=None,
        horizon_unknown="not known: no statement of its own is at hand",
        identity=told_apart_by(
            "$.id + $.state + $.trigger + $.updatedAt",
            "body",
            because="the template is the user's; without the issue's id and time it says what an event is",
        ),
        setup_url="https://one.newrelic.com/alerts/destinations",
    ),
)
