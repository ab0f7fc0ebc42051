"""HubSpot signs method, URL, body and time (v3), or hashes them together with the client secret (v1, v2).

v3 is HMAC-SHA256 in base64 of `<method><url><body><ms>`; v2 is SHA-256 in hex of `<secret><method><url><body>`,
v1 of `<secret><body>`; neither has a time, and where v3 was sent it decides. HubSpot signs its URL with some
escapes (`%3A %2F %3F %40 …`) decoded. App webhooks are batches of up to 100; `eventId` alone is not unique, and
`attemptNumber` counts the attempts. Workflows send any body, or none by GET: such an event is known by its body
or its URL. Ten tries in 24 hours.

https://developers.hubspot.com/docs/guides/apps/authentication/validating-requests
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from urllib.parse import unquote

from providers import Delivery, Event, Reason, Rejected
from providers.kit import Hmac, Timestamp, data_digest, field, first, fixed, joined, many_events, signer
from providers.kit.encoding import speller
from providers.kit.keys import keys_of
from providers.kit.reading import header_of, parse_form
from providers.kit.signing import expect_match

_ESCAPES = re.compile("%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)", re.IGNORECASE)
_HEX = speller("hex", 32)
scheme = Hmac(
    header="x-hubspot-signature-v3",
    encoding="base64",
    signed="{method}{url}{body}{timestamp}",
    timestamp=Timestamp(header="x-hubspot-request-timestamp", unit="ms"),
)
sign, CHECK, TOLERANCE = signer(scheme.sign), scheme.check_secret, scheme.tolerance
VOLATILE = ("$.attemptNumber",)
_when = (field("$.eventId"), field("$.subscriptionId"), field("$.occurredAt"))
_object = first(field("$.objectId"), joined(field("$.fromObjectId"), field("$.toObjectId"), by="-"))
_batch = many_events(
    items="$",
    id=first(joined(*_when, _object), data_digest(*VOLATILE)),
    type=first(field("$.subscriptionType"), fixed("workflow")),
    account=first(field("$.portalId"), field("$.origin.portalId")),
    occurred_at=field("$.occurredAt"),
)
sample = _batch.sample
RETRY_HORIZON = timedelta(days=1)
METHODS = ("POST", "GET")
SIGNS_URL = True
SETUP = "https://developers.hubspot.com/docs/api-reference/webhooks-webhooks-v3/guide"


def verify(delivery: Delivery, secrets: Sequence[str], now: datetime) -> None:
    """Accept `delivery` by the best signature sent, over its URL as it is or decoded. Raises: Rejected."""
    decoded = replace(delivery, url=_ESCAPES.sub(lambda escape: unquote(escape[0]), delivery.url))
    hashed = "x-hubspot-signature" in delivery.headers and "x-hubspot-signature-v3" not in delivery.headers
    try:
        (_verify_hash if hashed else scheme.verify)(delivery, secrets, now)
    except Rejected as error:
        if error.reason is not Reason.BAD_SIGNATURE or decoded == delivery:
            raise
        (_verify_hash if hashed else scheme.verify)(decoded, secrets, now)


def _verify_hash(delivery: Delivery, secrets: Sequence[str], _now: datetime) -> None:
    _, version = header_of(delivery.headers, ("x-hubspot-signature-version",))
    given = _HEX.fold(delivery.headers["x-hubspot-signature"])
    if version not in {"v1", "v2"} or given is None:
        raise Rejected(Reason.BAD_HEADER, "x-hubspot-signature is not a SHA-256 in hex of version v1 or v2")
    before = (delivery.method + delivery.url).encode("utf-8", "surrogatepass") if version == "v2" else b""
    hashes = (sha256(key + before + delivery.body).digest() for key in keys_of(secrets, "raw"))
    expect_match([given], (_HEX.folded(right) for right in hashes))


def events(delivery: Delivery) -> list[Event]:
    """The events of a verified `delivery`; a workflow's GET request is one. Raises: Rejected."""
    if delivery.body:
        return _batch(delivery)
    known_by = sha256(delivery.url.encode("utf-8", "surrogatepass")).hexdigest()
    return [Event(known_by, "workflow", parse_form(delivery.url.partition("?")[2]))]
