"""A sender of batches: HMAC-SHA256 of the body in hex, a list of parcels, no event id outside the body."""

from providers.kit import Hmac, field, signer
from providers.kit.events import many_events

scheme = Hmac(header="x-depot-signature")
verify, sign = scheme.verify, signer(scheme.sign)
events = many_events(items="$", id=field("$.id"), type=field("$.type"))
