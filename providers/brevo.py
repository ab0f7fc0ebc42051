"""Brevo (Sendinblue) brings a bearer token if its webhook has one, and signs nothing.

A webhook without a token can be given a URL that ends with the secret. There is no id (`$.id` is the
webhook's): event, message, address and time are. Brevo tries for a day or two.

https://developers.brevo.com/docs/how-to-use-webhooks
"""

from datetime import timedelta

from providers.kit import Token, body_digest, field, first, joined, one_event, signer

scheme = Token(header="authorization", prefix="Bearer ")
verify, sign, CHECK = scheme.verify, signer(scheme.sign), scheme.check_secret
_at = first(field("$.ts_event"), field("$.ts_epoch"), field("$.ts"), field("$.date_event"))
_message = first(field("$['message-id']"), field("$.camp_id"))
events = one_event(
    id=first(joined(field("$.event"), _message, field("$.email"), _at), body_digest()),
    type=field("$.event"),
    occurred_at=_at,
)
ID_IS_SIGNED = False
BODY_IS_UNSIGNED = True
RETRY_HORIZON = timedelta(days=2)
SETUP = "https://app.brevo.com/settings/webhooks"
