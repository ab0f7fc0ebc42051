"""Travis CI signs the JSON in the form field `payload` with its RSA key (PKCS#1 v1.5, SHA-1), in base64.

What is signed is the decoded text of the field, not the body. The secret is Travis's public key, the
`config.notifications.webhook.public_key` of https://api.travis-ci.com/config; that of another host is another.
There is no id: a build's id with its state and the time of that is the event, since a build that is restarted keeps
its id. The account is the repository's id; the header with its name is not signed.

https://docs.travis-ci.com/user/notifications/#verifying-webhook-requests
"""

from datetime import datetime
from typing import Unpack
from urllib.parse import urlencode

from providers import Delivery, Reason, Rejected
from providers.kit import Said, field, first, form_body, joined, json_in_form, one_event
from providers.kit.signed import Signed


def _payload(delivery: Delivery) -> bytes:
    fields = form_body(delivery)
    if "payload" not in fields:
        raise Rejected(Reason.BAD_BODY, "the form has no field 'payload'")
    return fields["payload"].encode()


scheme = Signed(header="signature", algorithm="rsa-sha1", signed=_payload)
verify, sign, CHECK = scheme.verify, scheme.sign, scheme.check_secret
_build, _state = field("$.id"), first(field("$.state"), field("$.status_message"))
_time = first(field("$.finished_at"), field("$.started_at"))
events = one_event(
    id=first(joined(_build, _state, _time), joined(_build, _state), _build),
    type=first(field("$.state"), field("$.status_message"), field("$.type")),
    account=first(field("$.repository.id"), field("$.repository.name")),
    occurred_at=_time,
    read=json_in_form("payload"),
)
SIGNED_IN_PARTS = True
MAX_BODY = 5 << 20  # it is parsed before it is known to be genuine
SETUP = "https://docs.travis-ci.com/user/notifications/#configuring-webhook-notifications"


def deliver(body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> Delivery:
    """The form that Travis would send with the JSON `body`; a form is sent as it is."""
    form = body if body.startswith(b"payload=") else urlencode({"payload": body}).encode()
    headers = {"content-type": "application/x-www-form-urlencoded", **sign(form, secret, now, **said)}
    return Delivery(said.get("method", "POST"), said.get("url", ""), headers, form)
