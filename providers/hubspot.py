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
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any, Final, Unpack
from urllib.parse import unquote

from hookonce.providers import Delivery, Event, Reason, Rejected
from hookonce.providers.kit import (
    FAILURES,
    Configured,
    Hmac,
    Sender,
    SignOptions,
    Timestamp,
    data_digest,
    expect_match,
    field,
    first,
    fixed,
    header_of,
    join,
    key_of,
    keys_of,
    many_events,
    parse_form,
    signer,
    speller,
    told_apart_by,
)
from hookonce.providers.kit.registry.options import Options

_ESCAPES = re.compile("%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)", re.IGNORECASE)
_HEX = speller("hex", 32)
scheme = Hmac(
    header="x-hubspot-signature-v3",
    encoding="base64",
    signed="{method}{url}{body}{timestamp}",
    timestamp=Timestamp(header="x-hubspot-request-timestamp", unit="ms"),
)
_HASHED: Final = "x-hubspot-signature"
_VERSION: Final = "x-hubspot-signature-version"
_VERSIONS: Final = ("v1", "v2", "v3")
_VOLATILE = ("$.attemptNumber",)
_when = (field("$.eventId"), field("$.subscriptionId"), field("$.occurredAt"))
_object = first(field("$.objectId"), join(field("$.fromObjectId"), field("$.toObjectId"), by="-"))
_batch = many_events(
    items="$",
    id=join(*_when, _object),
    undated=data_digest(*_VOLATILE),
    type=first(field("$.subscriptionType"), fixed("workflow")),
    account=first(field("$.portalId"), field("$.origin.portalId")),
    occurred_at=field("$.occurredAt"),
)


def _verify(versions: Sequence[str], delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the best signature sent, over its URL as it is or decoded. Raises: Rejected."""
    keys_of(secrets, "raw")
    _expect_version(versions, delivery)
    decoded = replace(delivery, url=_ESCAPES.sub(lambda escape: unquote(escape[0]), delivery.url))
    hashed = "v3" not in versions or scheme.header not in delivery.headers
    hashed = hashed and _HASHED in delivery.headers
    try:
        (_verify_hash if hashed else scheme.verify)(delivery, secrets, now)
    except Rejected as error:
        if error.reason is not Reason.BAD_SIGNATURE or decoded == delivery:
            raise
        (_verify_hash if hashed else scheme.verify)(decoded, secrets, now)


def _expect_version(versions: Sequence[str], delivery: Delivery) -> None:
    """Raises: Rejected(bad_signature) for a hash of a version that this source does not take, and none beside it."""
    version = delivery.headers.get(_VERSION)
    only_hash = _HASHED in delivery.headers and (
        "v3" not in versions or scheme.header not in delivery.headers
    )
    if only_hash and version in {"v1", "v2"} and version not in versions:
        msg = f"the signature is of {version}, which has no time; versions in the source's options says what is taken"
        raise Rejected(Reason.BAD_SIGNATURE, msg)


def _verify_hash(delivery: Delivery, secrets: Sequence[str], _now: datetime) -> None:
    _, version = header_of(delivery.headers, (_VERSION,))
    given = _HEX.fold(delivery.headers[_HASHED])
    if version not in {"v1", "v2"} or given is None:
        raise Rejected(Reason.BAD_HEADER, "x-hubspot-signature is not a SHA-256 in hex of version v1 or v2")
    before = (delivery.method + delivery.url).encode("utf-8", "surrogatepass") if version == "v2" else b""
    hashes = (sha256(key + before + delivery.body).digest() for key in keys_of(secrets, "raw"))
    expect_match([given], (_HEX.folded(right) for right in hashes))


def events(delivery: Delivery) -> list[Event]:
    """The events of a verified `delivery`; a workflow's GET request is one. Raises: Rejected."""
    if bool(delivery.body) is (delivery.method == "GET"):  # URL and body are signed with nothing between
        raise Rejected(Reason.BAD_BODY, "a GET request has no body, and any other has one")
    if delivery.body:
        return _batch(delivery)
    known_by = sha256(delivery.url.encode("utf-8", "surrogatepass")).hexdigest()
    said = parse_form(delivery.url.partition("?")[2])
    return [Event(known_by, "workflow", said, former_ids=(known_by,), is_undated=True)]


def configure(options: Mapping[str, Any]) -> Configured:
    """Make the provider for the `versions` that a source takes. Raises: ValueError listing every mistake."""
    given = Options(options, "hubspot")
    versions = given.some_of("versions", _VERSIONS, "v3")
    given.done()
    is_timed = "v3" in versions
    return Configured(
        verify=partial(_verify, versions),
        sign=signer(scheme.sign if is_timed else partial(_sign_hash, max(versions))),
        events=events,
        sender=Sender(
            id_is_signed=True,
            body_is_unsigned=False,
            signs_url=True,
            retry_horizon=timedelta(days=1),
            retries_on=FAILURES,
            identity=told_apart_by("$[*].eventId + $[*].subscriptionId + $[*].occurredAt", "receipt"),
            id_period=timedelta(minutes=1),
            tolerance=scheme.tolerance if is_timed else None,
            volatile=_VOLATILE,
            methods=("POST", "GET"),
            check_secret=scheme.check_secret,
            sample=_batch.sample,
            setup_url="https://developers.hubspot.com/docs/api-reference/webhooks-webhooks-v3/guide",
        ),
    )


def _sign_hash(
    version: str,
    body: bytes,
    secret: str,
    now: datetime,  # noqa: ARG001  as every sign has
    **options: Unpack[SignOptions],
) -> dict[str, str]:
    """What HubSpot would send of a version without a time."""
    before = options.get("method", "POST") + options.get("url", "") if version == "v2" else ""
    digest = sha256(key_of(secret, "raw") + before.encode() + body).hexdigest()
    return {_HASHED: digest, _VERSION: version}
