"""Adobe Acrobat Sign signs nothing: a secret at the end of the URL tells its notifications from others.

It brings its application's id in `X-AdobeSign-ClientId`, which must be the option `client_id` and goes back in every
answer, that to the probe of a new URL (a GET) and that to each notification, or Adobe takes it for failed. The id is
no secret: the one that ends the URL is. `$.webhookNotificationId` is the event's, the same on every attempt. Adobe
tries fifteen times in three days.

https://opensource.adobe.com/acrobat-sign/acrobat_sign_events/
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hmac import compare_digest
from typing import Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, Reply, kit

_HEADER: Final = "x-adobesign-clientid"
_path = kit.Token(path=True)


@dataclass(frozen=True)
class AdobeSign:
    """The sender with the client id of one application."""

    client_id: str
    events = kit.one_event(
        id=kit.or_body("$.webhookNotificationId"),
        type=kit.or_unknown("$.event"),
        account="$.webhookId",
        occurred_at="$.eventDate",
    )

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
        """Accept `delivery` of this application if its path ends with one of `secrets`. Raises: Rejected."""
        kit.header_of(delivery.headers, (_HEADER,))
        _path.verify(delivery, secrets, now)
        self._expect_client(delivery)

    def sign(
        self, body: bytes, secret: str, now: datetime, **told: Unpack[kit.SignOptions]
    ) -> dict[str, str]:
        """Return the headers; what there is to prove is in the path. Raises: ValueError for a blank secret."""
        _path.sign(body, secret, now, **told)
        return {"content-type": "application/json", _HEADER: self.client_id}

    def handshake(self, delivery: Delivery, secrets: Sequence[str]) -> Reply | None:
        """Give our own client's id back to a GET that brings it and the secret; None for anything else."""
        try:
            _path.authentic(delivery, secrets)
            self._expect_client(delivery)
        except Rejected:
            return None
        return self._answer if delivery.method == "GET" else None

    @property
    def sender(self) -> kit.Sender:
        """Return the declared sender, with an answer that names the client."""
        return kit.Sender(
            scheme=_path,
            id_is_signed=False,
            body_is_unsigned=True,
            retry_horizon=kit.days(3),
            identity=kit.told_apart_by("$.webhookNotificationId"),
            accepted=self._answer,
            setup_url="https://secure.adobesign.com/account/webhooks",
        )

    @property
    def _answer(self) -> Reply:
        return kit.json_reply({"xAdobeSignClientId": self.client_id})

    def _expect_client(self, delivery: Delivery) -> None:
        name, value = kit.header_of(delivery.headers, (_HEADER,))
        if not compare_digest(kit.octets(name, value), self.client_id.encode()):
            msg = "the client id is another application's; see option client_id"
            raise Rejected(Reason.BAD_SIGNATURE, msg)


@kit.with_options("adobe_sign")
def configure(given: kit.Options) -> AdobeSign:
    """Make the provider with a source's options."""
    return AdobeSign(given.text("client_id"))
