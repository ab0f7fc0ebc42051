"""DocuSign Connect signs the body with HMAC-SHA256, in base64, once for each active key.

The signatures are in `X-DocuSign-Signature-1` to `-100`; one right one is enough, so keys can be replaced. A
key is text as it stands, though it looks like base64. There is no id: it is made of the event, the envelope,
the recipient if it is about one, and when it was generated. `$.retryCount` counts the attempts, which go on
for 15 days. Choose the JSON format: the older XML is taken as it is, a text known by its fingerprint.

https://developers.docusign.com/platform/webhooks/connect/validate/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    any_body,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(
    header=tuple(f"x-docusign-signature-{number}" for number in range(1, 101)),
    every=True,
    encoding="base64",
)
verify = scheme.verify
sign = signer(scheme.sign)
_VOLATILE = ("$.retryCount",)
_event = field("$.event")
_envelope = field("$.data.envelopeId")
_time = field("$.generatedDateTime")
events = one_event(
    id=first(
        join(_event, _envelope, field("$.data.recipientId"), _time),
        join(_event, _envelope, _time),
        body_digest(*_VOLATILE),
    ),
    type=first(_event, fixed("unknown")),
    account=field("$.data.accountId"),
    occurred_at=_time,
    read=any_body,
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=15),
    identity=told_apart_by(
        "$.event + $.data.envelopeId + $.generatedDateTime",
        "body",
        because="the older XML has the time of each change of an envelope",
    ),
    volatile=_VOLATILE,
    check_secret=scheme.check_secret,
    setup_url="https://apps.docusign.com/send/admin/connect",
)
