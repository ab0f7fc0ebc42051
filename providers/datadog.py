"""Datadog signs nothing; its webhooks bring the user name and password, or the header, that they were set up with.

The secret is `user:password` (put it before the host in the webhook's URL); option `in` names a custom header instead,
`datadog = { in = "header:X-Token" }`. The body is a template of the user's: keep `"id": "$ID"`, which is the event's
id in Datadog, the same on every attempt, and `$EVENT_TYPE`. Without an id equal bodies are one event: add
`$LAST_UPDATED` or `$ALERT_TRANSITION` to such a template. A body that is a form is read too. Datadog waits 15 s, and
tries five more times after a 5xx.

https://docs.datadoghq.com/integrations/webhooks/
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.id"),
    type=kit.or_unknown("$.event_type"),
    account="$.org.id",
    occurred_at=kit.first("$.last_updated", "$.date"),
    read=kit.any_body,
)
configure = kit.token_sender(
    "datadog",
    "basic",
    events=events,
    sender=kit.Sender(
        id_is_signed=False,
        retry_horizon="unknown (no vendor documentation found)",
        retries_on=kit.SERVER_ERRORS,
        identity=kit.told_apart_by(
            "$.id", "body", because="the template is the user's; without an id it says what an event is"
        ),
        setup_url="https://app.datadoghq.com/integrations/webhooks",
    ),
)
