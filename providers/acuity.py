"""Acuity Scheduling signs the body with HMAC-SHA256, in base64; the key is the API key of the account.

Bodies are forms. There is no id: it is made of the action and the appointment's id. So a second change of one
appointment can't be told from a retry of the first: ask the API for what it is now.

https://developers.acuityscheduling.com/docs/webhooks
"""

from datetime import timedelta

from providers.kit import FORM, Hmac, field, form_body, joined, one_event, signer

scheme = Hmac(header="x-acuity-signature", encoding="base64")
verify, sign, CHECK = scheme.verify, signer(scheme.sign, content=FORM), scheme.check_secret
events = one_event(
    id=joined(field("$.action"), field("$.id")),
    type=field("$.action"),
    account=field("$.calendarID"),
    read=form_body,
)
RETRY_HORIZON = timedelta(days=2)
SETUP = "https://secure.acuityscheduling.com/app.php?key=api"
