"""DocuSign Connect signs the body with HMAC-SHA256, in base64, once for each active key.

The signatures are in `X-DocuSign-Signature-1` to `-100`; one right one is enough, so keys can be replaced. A
key is text as it stands, though it looks like base64. There is no id: it is made of the event, the envelope,
the recipient if it is about one, and when it was generated. `$.retryCount` counts the attempts, which go on
for 15 days. Choose the JSON format: the older XML is taken as it is, a text known by its fingerprint.

https://developers.docusign.com/platform/webhooks/connect/validate/
"""

from hookonce.providers import kit

_VOLATILE = ("$.retryCount",)
_event = kit.field("$.event")
_envelope = kit.field("$.data.envelopeId")
_time = kit.field("$.generatedDateTime")
events = kit.one_event(
    id=kit.or_body(
        kit.join(_event, _envelope, "$.data.recipientId", _time),
        kit.join(_event, _envelope, _time),
        without=_VOLATILE,
    ),
    type=kit.or_unknown(_event),
    account="$.data.accountId",
    occurred_at=_time,
    read=kit.any_body,
)
sender = kit.Sender(
    scheme=kit.Hmac(
        header=tuple(f"x-docusign-signature-{number}" for number in range(1, 101)),
        every=True,
        encoding="base64",
    ),
    id_is_signed=True,
    retry_horizon=kit.days(15),
    identity=kit.told_apart_by(
        "$.event + $.data.envelopeId + $.generatedDateTime",
        "body",
        because="the older XML has the time of each change of an envelope",
    ),
    volatile=_VOLATILE,
    subject=kit.about(entity=("$.data.envelopeId",), version="$.generatedDateTime"),
    setup_url="https://apps.docusign.com/send/admin/connect",
)
