"""Trello signs the body and then the callback URL with HMAC-SHA1, in base64.

The URL is exactly the one given when the webhook was made; the key is the application's OAuth secret. The id
is that of the action, `$.action.id`. The URL is asked by HEAD when the webhook is made. Three retries follow
within minutes; a reply of 410 deletes the webhook, so no error of ours has that code.

https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    answer_head,
    body_digest,
    field,
    first,
    fixed,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-trello-webhook", hash="sha1", encoding="base64", signed="{body}{url}")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.action.id"), body_digest()),
    type=first(field("$.action.type"), fixed("unknown")),
    account=first(field("$.model.id"), field("$.webhook.id")),
    occurred_at=field("$.action.date"),
)

sender = Sender(
    id_is_signed=True,
    signs_url=True,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by("$.action.id"),
    check_secret=scheme.check_secret,
    handshake=answer_head,
    setup_url="https://trello.com/power-ups/admin",
)
