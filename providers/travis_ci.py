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

from hookonce.providers import Delivery, Reason, Rejected, kit


def _payload(delivery: Delivery) -> bytes:
    fields = kit.form_body(delivery)
    if "payload" not in fields:
        raise Rejected(Reason.BAD_BODY, "the form has no field 'payload'")
    return fields["payload"].encode()


scheme = kit.Signed(header="signature", algorithm="rsa-sha1", signed=_payload)
sign = scheme.sign
_build = kit.field("$.id")
_state = kit.first("$.state", "$.status_message")
_time = kit.first("$.finished_at", "$.started_at")
events = kit.one_event(
    id=kit.first(kit.join(_build, _state, _time), kit.join(_build, _state), _build),
    type=kit.first("$.state", "$.status_message", "$.type"),
    account=kit.first("$.repository.id", "$.repository.name"),
    occurred_at=_time,
    read=kit.json_in_form("payload"),
)


def deliver(body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]) -> Delivery:
    """The form that Travis would send with the JSON `body`; a form is sent as it is."""
    form = body if body.startswith(b"payload=") else urlencode({"payload": body}).encode()
    headers = {"content-type": "application/x-www-form-urlencoded", **sign(form, secret, now, **options)}
    return Delivery(options.get("method", "POST"), options.get("url", ""), headers, form)


sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    signed_in_parts=True,
    body_is_unsigned=False,
    retry_horizon="unknown (no vendor documentation found)",
    identity=kit.told_apart_by(
        "$.payload.id + $.payload.state + $.payload.finished_at",
        "$.payload.id + $.payload.state + $.payload.started_at",
        "$.payload.id + $.payload.state",
    ),
    max_body=5 << 20,  # it is parsed before it is known to be genuine
    setup_url="https://docs.travis-ci.com/user/notifications/#configuring-webhook-notifications",
)
