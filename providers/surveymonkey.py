"""SurveyMonkey signs the body with HMAC-SHA1, in base64.

The secret is `<client id>&<client secret>` of the app, joined by an ampersand: that whole text is the key. The
id is `$.event_id`. The URL is asked by HEAD when the webhook is made.

https://api.surveymonkey.com/v3/docs#webhook-callbacks
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, one_event, signer
from providers.kit.probing import answer_head

scheme = Hmac(header="sm-signature", hash="sha1", encoding="base64")
verify, sign = scheme.verify, signer(scheme.sign)
events = one_event(
    id=first(field("$.event_id"), body_digest()),
    type=first(field("$.event_type"), fixed("unknown")),
    account=field("$.resources.survey_id"),
    occurred_at=field("$.event_datetime"),
)
handshake = answer_head
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://developer.surveymonkey.com/apps/"


def CHECK(secret: str) -> None:  # noqa: N802  a declaration of the module
    """Raises: ValueError for what is not two parts with an ampersand between."""
    if not all(secret.strip().partition("&")):
        msg = "the secret is not usable; expected '<client id>&<client secret>'"
        raise ValueError(msg)
