"""The scheme of Amazon SNS: values of the JSON are signed, by a key whose certificate the message links to.

Each signed value stands on a line of its own after its name, in the order of the names. What is not signed
(`UnsubscribeURL`, say) is left out of what `envelope` gives.
"""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Unpack

from hookonce.providers import Delivery, Reason, Rejected, Reply
from hookonce.providers.kit.crypto.certificates import key_of_certificate
from hookonce.providers.kit.crypto.fetched_keys import (
    Documents,
    Owner,
    fetched,
    may_fetch,
    owner_of,
    owners_of,
)
from hookonce.providers.kit.crypto.public_keys import (
    Algorithm,
    expect_signature,
    public_keys,
    signature_in,
    signature_of,
)
from hookonce.providers.kit.reading.bodies import json_body
from hookonce.providers.kit.reading.json_paths import find_text
from hookonce.providers.kit.signing.timestamps import Timestamp
from hookonce.providers.kit.signing.verdict import SignOptions, made_id

CONTENT: Final = "text/plain; charset=UTF-8"
_TIME: Final = Timestamp(key="Timestamp", unit="iso", tolerance=timedelta(hours=2))

_KEYS: Final = ("Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type")
_CONFIRMED: Final = {*_KEYS} - {"Subject"}
_SIGNED: Final = {
    "Notification": {*_KEYS} - {"SubscribeURL", "Token"},
    "SubscriptionConfirmation": _CONFIRMED,
    "UnsubscribeConfirmation": _CONFIRMED,
}
_VERSIONS: Final[Mapping[object, Algorithm]] = {"1": "rsa-sha1", "2": "rsa-sha256"}


def envelope(delivery: Delivery) -> dict[str, str]:
    """Return the signed values of a message, in their order. Raises: Rejected(bad_body)."""
    data = json_body(delivery)
    names = _SIGNED.get(find_text(data, "Type")) if isinstance(data, dict) else None
    if names is None:
        raise Rejected(Reason.BAD_BODY, "the body is no SNS message; raw message delivery must be off")
    found: dict[str, str] = {key: data[key] for key in _KEYS if key in names and data.get(key) is not None}
    if not all(isinstance(value, str) for value in found.values()) or names - {"Subject"} - found.keys():
        raise Rejected(Reason.BAD_BODY, "the body lacks a value that SNS signs")
    if any(
        "\n" in value for key, value in found.items() if key != "Message"
    ):  # each is signed on a line of its own
        raise Rejected(Reason.BAD_BODY, "a value that SNS signs on a line has more than one")
    return found


def signed_text(values: Mapping[str, str]) -> bytes:
    """Return the bytes that SNS signs for these values."""
    return "".join(f"{key}\n{value}\n" for key, value in values.items()).encode("utf-8", "surrogatepass")


@dataclass(frozen=True, eq=False)
class Sns:
    """The scheme, for some topics; `certificates` and `confirmations` are patterns of what may be fetched."""

    topics: tuple[str, ...]
    certificates: str
    confirmations: str
    test_certificate: str

    @property
    def proof(self) -> tuple[str, ...]:
        """The places of the signature, and of the token of a confirmation."""
        return ("$.Signature", "$.Token")

    @property
    def tolerance(self) -> timedelta | None:
        """How far the time of publishing may be from ours."""
        return _TIME.tolerance

    @property
    def signs_body(self) -> bool:
        """True: values in it are signed, and no others are in the data."""
        return True

    def verify(
        self, delivery: Delivery, secrets: Sequence[str], now: datetime, keys: Documents = None
    ) -> None:
        """Accept `delivery` if SNS signed it for one of the topics. Raises: Rejected, KeyNeeded."""
        values = self._authentic(delivery, secrets, keys)
        _TIME.check(_TIME.parse(values["Timestamp"]), now)

    def handshake(self, delivery: Delivery, secrets: Sequence[str], keys: Documents = None) -> Reply | None:
        """Confirm a subscription to a topic that is listed; None for anything else. Raises: KeyNeeded."""
        try:
            values = envelope(delivery)
            listed = [owner.name for owner in self._owners(secrets)]
            if values["Type"] != "SubscriptionConfirmation" or values["TopicArn"] not in listed:
                return None
            self._authentic(delivery, secrets, keys)
        except Rejected:
            return None
        url = values["SubscribeURL"]
        return Reply(fetch=url) if may_fetch(url, (self.confirmations,)) else None

    def deliver(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
        """Return the message that SNS would send. Raises: ValueError unless `secret` ends with a private key."""
        owner = owner_of(secret, "topic")
        raw = _message(body, owner, now, self.test_certificate)
        return Delivery("POST", options.get("url", ""), {"content-type": CONTENT}, raw)

    def _owners(self, secrets: Sequence[str]) -> list[Owner]:
        listed = [Owner(topic) for topic in self.topics]
        return [*listed, *owners_of(secrets, "topic")] if not listed or any(secrets) else listed

    def _authentic(self, delivery: Delivery, secrets: Sequence[str], keys: Documents) -> dict[str, str]:
        owners = self._owners(secrets)
        values, data = envelope(delivery), json_body(delivery)
        ours = [owner for owner in owners if owner.name in {"", values["TopicArn"]}]
        algorithm = _VERSIONS.get(find_text(data, "SignatureVersion"))
        if not ours or algorithm is None:
            raise Rejected(Reason.BAD_SIGNATURE, "the topic is none of this source's, or the version unknown")
        signature = signature_in("Signature", find_text(data, "Signature"), "base64")
        try:
            found = public_keys([owner.key for owner in ours], algorithm)
            expect_signature(found, algorithm, signature, signed_text(values))
        except Rejected:
            if all(owner.key for owner in ours):
                raise
            document = fetched(data.get("SigningCertURL"), keys, (self.certificates,))
            at = _TIME.moment(values["Timestamp"])
            key = key_of_certificate(document, algorithm, at)
            expect_signature([key], algorithm, signature, signed_text(values))
        return values


def _message(body: bytes, owner: Owner, now: datetime, certificate_url: str) -> bytes:
    """Return a message with what `body` says of it, signed with a private key. Raises: ValueError for another key."""
    said = _said(body)
    made: dict[str, Any] = {
        "Type": "Notification",
        "MessageId": made_id(body),
        "Message": body.decode("utf-8", "replace"),
        **said,
        "TopicArn": owner.name or said.get("TopicArn", "arn:aws:sns:us-west-2:123456789012:test"),
        "Timestamp": now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "SignatureVersion": "2",
        "SigningCertURL": certificate_url,
    }
    made["Type"] = made["Type"] if made["Type"] in _SIGNED else "Notification"
    text = signed_text(envelope(Delivery("POST", "", {}, json.dumps(made).encode())))
    made["Signature"] = b64encode(signature_of(owner.key, "rsa-sha256", text)).decode()
    return json.dumps(made, separators=(",", ":")).encode()


def _said(body: bytes) -> dict[str, Any]:
    """Return what a test says of its message already: nothing, if the body is another document."""
    try:
        data = json.loads(body)
    except ValueError:
        return {}
    is_message = isinstance(data, dict) and "MessageId" in data
    return {key: value for key, value in data.items() if isinstance(value, str)} if is_message else {}
