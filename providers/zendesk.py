"""Zendesk signs `<time><body>` with HMAC-SHA256, in base64; the time is ISO 8601, in a header of its own.

The id is that of the event, `$.id`, where a subscription to events sends it (`$.type` is
`zen:event-type:user.created`); else `X-Zendesk-Webhook-Invocation-Id`, the same on every retry and not signed. What
triggers and automations send, by any method, is any body, JSON (broken at times by what was filled in), XML or a
form, and of type `unknown`. By GET and DELETE there is none: the URL is not signed, so nothing is read from it.
Zendesk retries at once after 409 and five times after a timeout.

https://developer.zendesk.com/documentation/webhooks/verifying/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    Timestamp,
    any_body_or_none,
    body_digest,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
    told_apart_by,
    when_matches,
)

scheme = Hmac(
    header="x-zendesk-webhook-signature",
    encoding="base64",
    signed="{timestamp}{body}",
    timestamp=Timestamp(header="x-zendesk-webhook-signature-timestamp", unit="iso"),
)
verify = scheme.verify
sign = signer(scheme.sign, event_id="x-zendesk-webhook-invocation-id")
_unsigned = header("x-zendesk-webhook-invocation-id")
events = one_event(
    id=first(
        when_matches(field("$.type"), "zen:event-type:.+", field("$.id")),
        _unsigned,
        field("$.id"),
        body_digest(),
    ),
    former=(_unsigned,),
    type=first(field("$.type"), fixed("unknown")),
    account=first(header("x-zendesk-account-id"), field("$.account_id")),
    occurred_at=first(field("$.time"), header("x-zendesk-webhook-signature-timestamp")),
    read=any_body_or_none,
)

sender = Sender(
    id_is_signed=False,
    retry_horizon=timedelta(days=1),
    retries_on=(409, 429, 503),
    disables_after="70 % of failures, or a thousand, within five minutes: a pause",
    identity=told_apart_by("$.id", "header x-zendesk-webhook-invocation-id"),
    tolerance=scheme.tolerance,
    methods=("POST", "PUT", "PATCH", "DELETE", "GET"),
    check_secret=scheme.check_secret,
    setup_url="https://developer.zendesk.com/documentation/webhooks/",
)
