"""A sender of batches: HMAC-SHA256 of the body in hex, a list of parcels, no event id outside the body."""

from hookonce.providers.kit import Hmac, Sender, field, signer
from hookonce.providers.kit.events.declare import many_events

scheme = Hmac(header="x-depot-signature")
verify = scheme.verify
sign = signer(scheme.sign)
events = many_events(items="$", id=field("$.id"), type=field("$.type"))
sender = Sender(id_is_signed=True, retry_horizon=None)
