"""Adobe Acrobat Sign signs nothing: a secret at the end of the URL tells its notifications from others.

It brings its application's id in `X-AdobeSign-ClientId`, which must be the option `client_id` and goes back in every
answer, that to the probe of a new URL (a GET) and that to each notification, or Adobe takes it for failed. The id is
no secret: the one that ends the URL is. `$.webhookNotificationId` is the event's, the same on every attempt. Adobe
tries fifteen times in three days.

https://opensource.adobe.com/acrobat-sign/acrobat_sign_events/
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, Reply
from hookonce.providers.kit import (
    Configured,
    Sender,
    SignOptions,
    Token,
    body_digest,
    field,
    first,
    fixed,
    header_of,
    json_reply,
    octets,
    one_event,
    told_apart_by,
)
from hookonce.providers.kit.registry.options import Options

_HEADER: Final = "x-adobesign-clientid"
_path = Token(path=True)
events = one_event(
    id=first(field("$.webhookNotificationId"), body_digest()),
    type=first(field("$.event"), fixed("unknown")),
    account=field("$.webhookId"),
    occurred_at=field("$.eventDate"),
)


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider with a source's options. Raises: ValueError listing every mistake."""
    given = Options(options, "adobe_sign")
    client_id = given.text("client_id")
    given.done()
    answer = json_reply({"xAdobeSignClientId": client_id})

    def expect_client(delivery: Delivery) -> None:
        name, value = header_of(delivery.headers, (_HEADER,))
        if not compare_digest(octets(name, value), client_id.encode()):
            raise Rejected(
                Reason.BAD_SIGNATURE, "the client id is another application's; see option client_id"
            )

    def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
        """Accept `delivery` of this application if its path ends with one of `secrets`. Raises: Rejected."""
        header_of(delivery.headers, (_HEADER,))
        _path.verify(delivery, secrets, now)
        expect_client(delivery)

    def sign(body: bytes, secret: str, now: datetime, **told: Unpack[SignOptions]) -> dict[str, str]:
        """Return the headers; what there is to prove is in the path. Raises: ValueError for a blank secret."""
        _path.sign(body, secret, now, **told)
        return {"content-type": "application/json", _HEADER: client_id}

    def deliver(body: bytes, secret: str, now: datetime, **told: Unpack[SignOptions]) -> Delivery:
        """Return a delivery with the secret in its path. Raises: ValueError for a blank secret."""
        said: SignOptions = {**told, "headers": {**told.get("headers", {}), **sign(body, secret, now)}}
        return _path.deliver(body, secret, now, **said)

    def handshake(delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
        """Give our own client's id back to a GET that brings it and the secret; None for anything else."""
        try:
            _path.authentic(delivery, secrets)
            expect_client(delivery)
        except Rejected:
            return None
        return answer if delivery.method == "GET" else None

    return Configured(
        verify=verify,
        events=events,
        sign=sign,
        sender=Sender(
            id_is_signed=False,
            body_is_unsigned=True,
            retry_horizon=timedelta(days=3),
            identity=told_apart_by("$.webhookNotificationId"),
            accepted=answer,
            unauthenticated=True,
            check_secret=_path.check_secret,
            handshake=handshake,
            deliver=deliver,
            setup_url="https://secure.adobesign.com/account/webhooks",
        ),
    )
