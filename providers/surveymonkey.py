"""SurveyMonkey signs the body with HMAC-SHA1, in base64.

The secret is `<client id>&<client secret>` of the app, joined by an ampersand: that whole text is the key. The
id is `$.event_id`. The URL is asked by HEAD when the webhook is made.

https://api.surveymonkey.com/v3/docs#webhook-callbacks
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

scheme = Hmac(header="sm-signature", hash="sha1", encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign)
events = one_event(
    id=first(field("$.event_id"), body_digest()),
    type=first(field("$.event_type"), fixed("unknown")),
    account=field("$.resources.survey_id"),
    occurred_at=field("$.event_datetime"),
)


def check_secret(secret: str) -> None:
    """Raises: ValueError for what is not two parts with an ampersand between."""
    if not all(secret.strip().partition("&")):
        msg = "the secret is not usable; expected '<client id>&<client secret>'"
        raise ValueError(msg)


sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("$.event_id"),
    check_secret=check_secret,
    handshake=answer_head,
    setup_url="https://developer.surveymonkey.com/apps/",
)
