"""Teams' outgoing webhooks sign the body with HMAC-SHA256: `Authorization: HMAC <base64>`.

The key is the security token that Teams shows once, decoded from base64. The id is the activity's, `$.id`, a time in
milliseconds that is unique in its conversation only, and a message keeps it when it is edited: both go with it. Teams
wants a message as the answer, within five seconds, and posts it in the channel: it is always the same one here.
There are no retries.

https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/how-to/add-outgoing-webhook
"""

from datetime import timedelta

from hookonce.providers import Reply
from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    scoped,
    signer,
    told_apart_by,
    when_matches,
)

scheme = Hmac(
    header="authorization",
    prefix="HMAC ",
    encoding="base64",
    secret="base64",  # noqa: S106  a codec's name
)
verify = scheme.verify
sign = signer(scheme.sign)
_kind = field("$.type")
_activity = first(scoped(field("$.conversation.id"), field("$.id")), field("$.id"))
events = one_event(
    id=first(
        when_matches(first(_kind, fixed("message")), "message", _activity),
        join(_activity, _kind, body_digest()),
        body_digest(),
    ),
    former=(field("$.id"),),
    type=first(_kind, fixed("unknown")),
    account=field("$.channelData.tenant.id"),
    occurred_at=field("$.timestamp"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by("$.id"),
    accepted=Reply(body=b'{"type":"message","text":"Received."}', content_type="application/json"),
    check_secret=scheme.check_secret,
    setup_url="https://learn.microsoft.com/en-us/microsoftteams/platform/webhooks-and-connectors/",
)
