"""Acuity Scheduling signs the body with HMAC-SHA256, in base64; the key is the API key of the account.

Bodies are forms. There is no id: it is made of the action and the appointment's id. The next change of an
appointment looks exactly the same, so the minute of receipt is part of the id.

https://developers.acuityscheduling.com/docs/webhooks
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="x-acuity-signature", encoding="base64")
sign = kit.signer(scheme.sign, content=kit.FORM)
events = kit.one_event(
    id=kit.or_body(kit.join("$.action", "$.id")),
    type=kit.or_unknown("$.action"),
    account="$.calendarID",
    read=kit.form_body,
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(2),
    identity=kit.told_apart_by("receipt"),
    id_period=kit.minutes(1),
    setup_url="https://secure.acuityscheduling.com/app.php?key=api",
)
