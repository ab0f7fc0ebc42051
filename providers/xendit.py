"""Xendit brings the webhook verification token of the account in `x-callback-token`, and signs nothing.

Newer webhooks name their `$.event`, older ones are the object itself, and their type is its status. An event is its
body: every one has an id of what it is about and when that was changed. There are six retries within 24 hours, and
the dashboard can send one again.

https://docs.xendit.co/apidocs/webhook-behavior
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Sender,
    Token,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Token(header="x-callback-token")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=body_digest(),
    type=first(field("$.event"), field("$.status"), fixed("unknown")),
    account=first(field("$.business_id"), field("$.user_id"), field("$.owner_id")),
    occurred_at=first(field("$.created"), field("$.updated")),
)

sender = Sender(
    id_is_signed=False,
    body_is_unsigned=True,
    retry_horizon=timedelta(days=2),
    identity=told_apart_by(
        "$.created",
        "$.updated",
        "body",
        because="the body has the id of the payment and when it was changed",
    ),
    check_secret=scheme.check_secret,
    setup_url="https://dashboard.xendit.co/settings/developers#webhooks",
)
