"""PandaDoc signs the body with HMAC-SHA256, in hex, in the URL's query: `?signature=…`; the key is the shared key.

A delivery is a list of events, one as a rule. Since July 2026 its id is in `X-PandaDoc-Webhook-Event-Id`, the same on
every attempt and not signed; a further event of the list has its place behind it. Without that header an event's id is
made of the kind, the document, its status and the time of its change; for what a recipient did, of the kind, the
document, who and when. What has neither is known by its fingerprint.

https://developers.pandadoc.com/docs/webhook-verification
https://developers.pandadoc.com/changelog/2026-07-20-webhooks-deduplicate
"""

from hookonce.providers import kit

_ID = "x-pandadoc-webhook-event-id"
_kind, _document = kit.field("$.event"), kit.field("$.data.id")
_changed, _acted = kit.field("$.data.date_modified"), kit.field("$.data.action_date")
events = kit.many_events(
    items="$",
    id=kit.first(
        kit.when_matches(kit.position(), "0", kit.header(_ID)),
        kit.join(kit.header(_ID), kit.position()),
        kit.join(_kind, _document, "$.data.action_by.id", _acted),
        kit.join(_kind, _document, "$.data.status", _changed),
        kit.data_digest(),
    ),
    type=kit.or_unknown(_kind),
    account="$.data.created_by.email",
    occurred_at=kit.first(_acted, _changed),
)
sender = kit.Sender(
    scheme=kit.Hmac(query="signature"),
    id_is_signed=False,
    holds_repeats="what it says of a document or a template has the time of the change, so equal bodies are one event",
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by(
        f"header {_ID}",
        "$[*].event + $[*].data.id + $[*].data.action_date",
        "$[*].event + $[*].data.id + $[*].data.status + $[*].data.date_modified",
        "body",
        because="what names no time of a change says all there is about the document",
    ),
    setup_url="https://app.pandadoc.com/a/#/settings/integrations/webhook",
)
