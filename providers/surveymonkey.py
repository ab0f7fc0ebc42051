"""SurveyMonkey signs the body with HMAC-SHA1, in base64.

The secret is `<client id>&<client secret>` of the app, joined by an ampersand: that whole text is the key. The
id is `$.event_id`. The URL is asked by HEAD when the webhook is made.

https://api.surveymonkey.com/v3/docs#webhook-callbacks
"""

from hookonce.providers import kit

events = kit.one_event(
    id=kit.or_body("$.event_id"),
    type=kit.or_unknown("$.event_type"),
    account="$.resources.survey_id",
    occurred_at="$.event_datetime",
)


def check_secret(secret: str) -> None:
    """Raises: ValueError for what is not two parts with an ampersand between."""
    if not all(secret.strip().partition("&")):
        msg = "the secret is not usable; expected '<client id>&<client secret>'"
        raise ValueError(msg)


sender = kit.Sender(
    scheme=kit.Hmac(header="sm-signature", hash="sha1", encoding="base64"),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.event_id"),
    handshake=kit.answer_head,
    setup_url="https://developer.surveymonkey.com/apps/",
)
