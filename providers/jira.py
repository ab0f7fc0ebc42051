"""Jira (Cloud) signs the body with HMAC-SHA256, in hex behind `sha256=`, in a header without a number.

The header is `X-Hub-Signature`; the key is the webhook's secret, as text, and a webhook without one is not
signed. The id is `X-Atlassian-Webhook-Identifier`, the same on every attempt and not covered by the
signature. Connect apps get a token instead, which is not taken. Jira tries five more times, 5 to 15 minutes
apart.

https://developer.atlassian.com/cloud/jira/platform/webhooks/
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="x-hub-signature", prefix="sha256=")
sign = kit.signer(scheme.sign, event_id="x-atlassian-webhook-identifier")
events = kit.one_event(
    id=kit.or_body("header x-atlassian-webhook-identifier"),
    type=kit.first("$.webhookEvent", "$.eventType", "$.event", kit.fixed("webhook")),
    account=kit.first("$.issue.fields.project.key", "$.project.key", "$.cloudId"),
    occurred_at="$.timestamp",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    retry_horizon=kit.days(1),
    retries_on=(408, 409, 425, *kit.FAILURES),
    identity=kit.told_apart_by("header x-atlassian-webhook-identifier"),
    holds_repeats="`$.timestamp` is the moment of the event, in milliseconds",
    subject=kit.about_each(
        {"jira:issue_*": "$.issue", "comment_*": "$.comment", "sprint_*": "$.sprint", "board_*": "$.board"},
        version=kit.field("$.timestamp"),
        unit="ms",
    ),
    setup_url="https://developer.atlassian.com/cloud/jira/platform/webhooks/",
)
