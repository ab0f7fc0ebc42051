"""Zendesk signs `<time><body>` with HMAC-SHA256, in base64; the time is ISO 8601, in a header of its own.

The id is that of the event, `$.id`, where a subscription to events sends it (`$.type` is
`zen:event-type:user.created`); else `X-Zendesk-Webhook-Invocation-Id`, the same on every retry and not signed. What
triggers and automations send, by any method, is any body, JSON (broken at times by what was filled in), XML or a
form, and of type `unknown`. By GET and DELETE there is none: the URL is not signed, so nothing is read from it.
Zendesk retries at once after 409 and five times after a timeout.

https://developer.zendesk.com/documentation/webhooks/verifying/
"""

from hookonce.providers import kit

scheme = kit.Hmac(
    header="x-zendesk-webhook-signature",
    encoding="base64",
    signed="{timestamp}{body}",
    timestamp=kit.Timestamp(header="x-zendesk-webhook-signature-timestamp", unit="iso"),
)
sign = kit.signer(scheme.sign, event_id="x-zendesk-webhook-invocation-id")
_unsigned = kit.header("x-zendesk-webhook-invocation-id")
events = kit.one_event(
    id=kit.or_body(kit.when_matches("$.type", "zen:event-type:.+", "$.id"), _unsigned, "$.id"),
    type=kit.or_unknown("$.type"),
    account=kit.first("header x-zendesk-account-id", "$.account_id"),
    occurred_at=kit.first("$.time", "header x-zendesk-webhook-signature-timestamp"),
    read=kit.any_body_or_none,
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=False,
    runs_repeats="a trigger's body is whatever its author wrote, the same for each ticket if that names none",
    retry_horizon=kit.days(1),
    retries_on=(409, 429, 503),
    disables_after="70 % of failures, or a thousand, within five minutes: a pause",
    identity=kit.told_apart_by("$.id", "header x-zendesk-webhook-invocation-id"),
    methods=("POST", "PUT", "PATCH", "DELETE", "GET"),
    subject=kit.about(entity=("$.subject",), version="$.time"),
    setup_url="https://developer.zendesk.com/documentation/webhooks/",
)
