"""HubSpot signs method, URL, body and time (v3), or hashes them together with the client secret (v1, v2).

v3 is HMAC-SHA256 in base64 of `<method><url><body><ms>`; v2 is SHA-256 in hex of `<secret><method><url><body>`, v1 of
`<secret><body>`; neither has a time, so whoever has one delivery can send it for ever, and one of v3 as one of v1 if
that came beside it. So only v3 is taken, unless the option `versions` lists the others (`["v2", "v3"]`, for what
sends no v3); where v3 was sent and is listed, it decides. HubSpot signs its URL with some escapes (`%3A %2F %3F %40
…`) decoded. App webhooks are batches of up to 100; `eventId` alone is not unique, and `attemptNumber` counts the
attempts. Workflows send any body, or none by GET: such an event is known by its body or its URL, and the minute of
receipt, as each object of a workflow may send the same. Ten tries in 24 hours.

https://developers.hubspot.com/docs/guides/apps/authentication/validating-requests
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from typing import Final, Unpack
from urllib.parse import unquote

from hookonce.providers import Delivery, Event, Reason, Rejected, kit

_ESCAPES = re.compile("%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)", re.IGNORECASE)
_HEX = kit.speller("hex", 32)
scheme = kit.Hmac(
    header="x-hubspot-signature-v3",
    encoding="base64",
    signed="{method}{url}{body}{timestamp}",
    timestamp=kit.Timestamp(header="x-hubspot-request-timestamp", unit="ms"),
)
_HASHED: Final = "x-hubspot-signature"
_VERSION: Final = "x-hubspot-signature-version"
_VERSIONS: Final = ("v1", "v2", "v3")
_VOLATILE = ("$.attemptNumber",)
_when = (kit.field("$.eventId"), kit.field("$.subscriptionId"), kit.field("$.occurredAt"))
_object = kit.first("$.objectId", kit.join("$.fromObjectId", "$.toObjectId", by="-"))
_batch = kit.many_events(
    items="$",
    id=kit.join(*_when, _object),
    undated=kit.data_digest(*_VOLATILE),
    type=kit.first("$.subscriptionType", kit.fixed("workflow")),
    account=kit.first("$.portalId", "$.origin.portalId"),
    occurred_at="$.occurredAt",
)


@dataclass(frozen=True)
class HubSpot:
    """The sender, with the versions of signatures that a source takes."""

    versions: Sequence[str]

    @property
    def sender(self) -> kit.Sender:
        """Return the declared sender; only v3 has a time."""
        return kit.Sender(
            id_is_signed=True,
            body_is_unsigned=False,
            signs_url=True,
            retry_horizon=kit.days(1),
            retries_on=kit.FAILURES,
            identity=kit.told_apart_by("$[*].eventId + $[*].subscriptionId + $[*].occurredAt", "receipt"),
            id_period=kit.minutes(1),
            tolerance=scheme.tolerance if "v3" in self.versions else None,
            volatile=_VOLATILE,
            methods=("POST", "GET"),
            check_secret=scheme.check_secret,
            sample=_batch.sample,
            setup_url="https://developers.hubspot.com/docs/api-reference/webhooks-webhooks-v3/guide",
        )

    def verify(self, delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
        """Accept `delivery` by the best signature sent, over its URL as it is or decoded. Raises: Rejected."""
        kit.keys_of(secrets, "raw")
        is_hashed = _HASHED in delivery.headers and not (
            "v3" in self.versions and scheme.header in delivery.headers
        )
        version = delivery.headers.get(_VERSION)
        if is_hashed and version in {"v1", "v2"} and version not in self.versions:
            msg = f"the signature is of {version}, which has no time; versions in the options says what is taken"
            raise Rejected(Reason.BAD_SIGNATURE, msg)
        verify = _verify_hash if is_hashed else scheme.verify
        decoded = replace(delivery, url=_ESCAPES.sub(lambda escape: unquote(escape[0]), delivery.url))
        try:
            verify(delivery, secrets, now)
        except Rejected as error:
            if error.reason is not Reason.BAD_SIGNATURE or decoded == delivery:
                raise
            verify(decoded, secrets, now)

    def sign(
        self, body: bytes, secret: str, now: datetime, **options: Unpack[kit.SignOptions]
    ) -> dict[str, str]:
        """Return the delivery that HubSpot would send. Raises: ValueError for a blank secret."""
        sign: kit.Sign = scheme.sign if "v3" in self.versions else self._hash
        return kit.signer(sign)(body, secret, now, **options)

    def events(self, delivery: Delivery) -> list[Event]:
        """The events of a verified `delivery`; a workflow's GET request is one. Raises: Rejected."""
        if bool(delivery.body) is (delivery.method == "GET"):  # URL and body are signed with nothing between
            raise Rejected(Reason.BAD_BODY, "a GET request has no body, and any other has one")
        if delivery.body:
            return _batch(delivery)
        known_by = sha256(delivery.url.encode("utf-8", "surrogatepass")).hexdigest()
        said = kit.parse_form(delivery.url.partition("?")[2])
        return [Event(known_by, "workflow", said, is_undated=True)]

    def _hash(
        self,
        body: bytes,
        secret: str,
        now: datetime,  # noqa: ARG002  as every sign has
        **options: Unpack[kit.SignOptions],
    ) -> dict[str, str]:
        version = max(self.versions)
        before = options.get("method", "POST") + options.get("url", "") if version == "v2" else ""
        digest = sha256(kit.key_of(secret, "raw") + before.encode() + body).hexdigest()
        return {_HASHED: digest, _VERSION: version}


def _verify_hash(delivery: Delivery, secrets: Sequence[str], _now: datetime) -> None:
    _, version = kit.header_of(delivery.headers, (_VERSION,))
    given = _HEX.fold(delivery.headers[_HASHED])
    if version not in {"v1", "v2"} or given is None:
        raise Rejected(Reason.BAD_HEADER, "x-hubspot-signature is not a SHA-256 in hex of version v1 or v2")
    before = (delivery.method + delivery.url).encode("utf-8", "surrogatepass") if version == "v2" else b""
    hashes = (sha256(key + before + delivery.body).digest() for key in kit.keys_of(secrets, "raw"))
    kit.expect_match([given], (_HEX.folded(right) for right in hashes))


@kit.with_options("hubspot")
def configure(given: kit.Options) -> HubSpot:
    """Make the provider for the `versions` that a source takes."""
    return HubSpot(given.some_of("versions", _VERSIONS, "v3"))
