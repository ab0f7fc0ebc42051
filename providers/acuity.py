"""Acuity Scheduling signs the body with HMAC-SHA256, in base64; the key is the API key of the account.

Bodies are forms. There is no id: it is made of the action and the appointment's id. The next change of an
appointment looks exactly the same, so the minute of receipt is part of the id.

https://developers.acuityscheduling.com/docs/webhooks
"""

from datetime import timedelta

from providers.kit import FORM, Hmac, body_digest, field, first, fixed, form_body, joined, one_event, signer

scheme = Hmac(header="x-acuity-signature", encoding="base64")
verify, sign, CHECK = scheme.verify, signer(scheme.sign, content=FORM), scheme.check_secret
events = one_event(
    id=first(joined(field("$.action"), field("$.id")), body_digest()),
    type=first(field("$.action"), fixed("unknown")),
    account=field("$.calendarID"),
    read=form_body,
)
ID_PERIOD = timedelta(minutes=1)
RETRY_HORIZON = timedelta(days=2)
SETUP = "https://secure.acuityscheduling.com/app.php?key=api"
