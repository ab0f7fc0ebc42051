"""Trello signs the body and then the callback URL with HMAC-SHA1, in base64.

The URL is exactly the one given when the webhook was made; the key is the application's OAuth secret. The id
is that of the action, `$.action.id`. The URL is asked by HEAD when the webhook is made. Three retries follow
within minutes; a reply of 410 deletes the webhook, so no error of ours has that code.

https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks/
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.action.id"),
    type=kit.or_unknown("$.action.type"),
    account=kit.first("$.model.id", "$.webhook.id"),
    occurred_at="$.action.date",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="x-trello-webhook", hash="sha1", encoding="base64", signed="{body}{url}"),
    id_is_signed=True,
    signs_url=True,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by("$.action.id"),
    handshake=kit.answer_head,
    setup_url="https://trello.com/power-ups/admin",
)
