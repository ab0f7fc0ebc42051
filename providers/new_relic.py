"""New Relic signs nothing; a webhook destination brings a bearer token, or user name and password.

The secret is the bearer token; option `in` takes "basic" or a header. The body is a template of the user's: the default
one has the issue's id, state and the time of its update, which together are the event. Without them equal bodies are
one event. The type is the state.

https://docs.newrelic.com/docs/alerts/get-notified/notification-integrations/#webhook
"""

from hookonce.providers import kit

_parts = (kit.field("$.id"), kit.field("$.state"), kit.field("$.trigger"), kit.field("$.updatedAt"))
events = kit.one_event(
    id=kit.or_body(kit.join(*_parts)),
    type=kit.or_unknown("$.state"),
    account="$.workflowName",
    occurred_at="$.updatedAt",
)
configure = kit.token_sender(
    "new_relic",
    "bearer",
    events=events,
    sender=kit.Sender(
        id_is_signed=False,
        retry_horizon="unknown (no vendor documentation found)",
        identity=kit.told_apart_by(
            "$.id + $.state + $.trigger + $.updatedAt",
            "body",
            because="the template is the user's; without the issue's id and time it says what an event is",
        ),
        setup_url="https://one.newrelic.com/alerts/destinations",
    ),
)
