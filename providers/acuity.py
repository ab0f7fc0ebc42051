"""Acuity Scheduling signs the body with HMAC-SHA256, in base64; the key is the API key of the account.

Bodies are forms. There is no id: it is made of the action and the appointment's id. The next change of an
appointment looks exactly the same, so the minute of receipt is part of the id.

https://developers.acuityscheduling.com/docs/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    FORM,
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    form_body,
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-acuity-signature", encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign, content=FORM)
events = one_event(
    id=first(join(field("$.action"), field("$.id")), body_digest()),
    type=first(field("$.action"), fixed("unknown")),
    account=field("$.calendarID"),
    read=form_body,
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=2),
    identity=told_apart_by("receipt"),
    id_period=timedelta(minutes=1),
    check_secret=scheme.check_secret,
    setup_url="https://secure.acuityscheduling.com/app.php?key=api",
)
