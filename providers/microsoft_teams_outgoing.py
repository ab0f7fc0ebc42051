"""Teams' outgoing webhooks sign the body with HMAC-SHA256: `Authorization: HMAC <base64>`.

The key is the security token that Teams shows once, decoded from base64. The id is the activity's, `$.id`, a time in
milliseconds that is unique in its conversation only, and a message keeps it when it is edited: both go with it. Teams
wants a message as the answer, within five seconds, and posts it in the channel: it is always the same one here.
There are no retries.

https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-outgoing-webhook
"""

from hookonce.providers import Reply, kit

_kind = kit.field("$.type")
_activity = kit.first(kit.scoped("$.conversation.id", "$.id"), "$.id")
events = kit.one_event(
    id=kit.or_body(
        kit.when_matches(kit.first(_kind, kit.fixed("message")), "message", _activity),
        kit.join(_activity, _kind, kit.body_digest()),
    ),
    type=kit.or_unknown(_kind),
    account="$.channelData.tenant.id",
    occurred_at="$.timestamp",
)
sender = kit.Sender(
    scheme=kit.Hmac(header="authorization", prefix="HMAC ", encoding="base64", secret="base64"),
    id_is_signed=True,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by("$.id"),
    accepted=Reply(body=b'{"type":"message","text":"Received."}', content_type="application/json"),
    setup_url="https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/",
)
