"""Jira (Cloud) signs the body with HMAC-SHA256, in hex behind `sha256=`, in a header without a number.

The header is `X-Hub-Signature`; the key is the webhook's secret, as text, and a webhook without one is not
signed. The id is `X-Atlassian-Webhook-Identifier`, the same on every attempt and not covered by the
signature. Connect apps get a token instead, which is not taken. Jira tries five more times, 5 to 15 minutes
apart.

https://developer.atlassian.com/cloud/jira/platform/webhooks/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    FAILURES,
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-hub-signature", prefix="sha256=")
verify = scheme.verify
sign = signer(scheme.sign, event_id="x-atlassian-webhook-identifier")
events = one_event(
    id=first(header("x-atlassian-webhook-identifier"), body_digest()),
    type=first(field("$.webhookEvent"), field("$.eventType"), field("$.event"), fixed("webhook")),
    account=first(field("$.issue.fields.project.key"), field("$.project.key"), field("$.cloudId")),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=1),
    retries_on=(408, 409, 425, *FAILURES),
    identity=told_apart_by("header x-atlassian-webhook-identifier"),
    check_secret=scheme.check_secret,
    setup_url="https://developer.atlassian.com/cloud/jira/platform/webhooks/",
)
