"""DocuSign Connect signs the body with HMAC-SHA256, in base64, once for each active key.

The signatures are in `X-DocuSign-Signature-1` to `-100`; one right one is enough, so keys can be replaced. A
key is text as it stands, though it looks like base64. There is no id: it is made of the event, the envelope,
the recipient if it is about one, and when it was generated. `$.retryCount` counts the attempts, which go on
for 15 days. Choose the JSON format: the older XML is taken as it is, a text known by its fingerprint.

https://developers.docusign.com/platform/webhooks/connect/validate/
"""

from datetime import timedelta

from providers.kit import Hmac, any_body, body_digest, field, first, fixed, joined, one_event, signer

scheme = Hmac(
    header=tuple(f"x-docusign-signature-{number}" for number in range(1, 101)),
    every=True,
    encoding="base64",
)
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
VOLATILE = ("$.retryCount",)
_event, _envelope, _time = field("$.event"), field("$.data.envelopeId"), field("$.generatedDateTime")
events = one_event(
    id=first(
        joined(_event, _envelope, field("$.data.recipientId"), _time),
        joined(_event, _envelope, _time),
        body_digest(*VOLATILE),
    ),
    type=first(_event, fixed("unknown")),
    account=field("$.data.accountId"),
    occurred_at=_time,
    read=any_body,
)
RETRY_HORIZON = timedelta(days=15)
SETUP = "https://apps.docusign.com/send/admin/connect"
