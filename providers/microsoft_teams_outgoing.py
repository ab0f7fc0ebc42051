"""Teams' outgoing webhooks sign the body with HMAC-SHA256: `Authorization: HMAC <base64>`.

The key is the security token that Teams shows once, decoded from base64. The id is the activity's, `$.id`. Teams
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
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header="authorization",
    prefix="HMAC ",
    encoding="base64",
    secret="base64",  # noqa: S106  a codec's name
)
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.id"), body_digest()),
    type=first(field("$.type"), fixed("unknown")),
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
