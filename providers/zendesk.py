"""Zendesk signs `<time><body>` with HMAC-SHA256, in base64; the time is ISO 8601, in a header of its own.

The id is `X-Zendesk-Webhook-Invocation-Id`, the same on every retry and not signed, else `$.id`. Event
subscriptions name their type, `zen:event-type:user.created`; what triggers and automations send, by any method,
is any body, JSON (broken at times by what was filled in), XML or a form, and of type `unknown`. By GET and DELETE
there is none: the URL is not signed, so nothing is read from it. Zendesk retries at once after 409 and five times
after a timeout.

https://developer.zendesk.com/documentation/webhooks/verifying/
"""

from datetime import timedelta

from providers.kit import (
    Hmac,
    Timestamp,
    any_body_or_none,
    body_digest,
    field,
    first,
    fixed,
    header,
    one_event,
    signer,
)

scheme = Hmac(
    header="x-zendesk-webhook-signature",
    encoding="base64",
    signed="{timestamp}{body}",
    timestamp=Timestamp(header="x-zendesk-webhook-signature-timestamp", unit="iso"),
)
verify, CHECK, TOLERANCE = scheme.verify, scheme.check_secret, scheme.tolerance
sign = signer(scheme.sign, event_id="x-zendesk-webhook-invocation-id")
events = one_event(
    id=first(header("x-zendesk-webhook-invocation-id"), field("$.id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
    account=first(header("x-zendesk-account-id"), field("$.account_id")),
    occurred_at=first(field("$.time"), header("x-zendesk-webhook-signature-timestamp")),
    read=any_body_or_none,
)
ID_IS_SIGNED = False
METHODS = ("POST", "PUT", "PATCH", "DELETE", "GET")
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://developer.zendesk.com/documentation/webhooks/"
