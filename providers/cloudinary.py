"""Cloudinary hashes `<body><time><API secret>` with SHA-1 or SHA-256 (no HMAC), in hex in `X-Cld-Signature`.

Which hash is a setting of the account (`signature_algorithm`), SHA-1 unless changed; they are told apart by their
length. The secret is the API secret. There is no id: which version of which asset was uploaded is the event, and in
which batch of transformations; what else is told of an asset (moderation, analysis) comes more than once for a
version and is known by its fingerprint. Cloudinary tries three times in nine minutes; its SDK takes a time of two
hours ago.

https://cloudinary.com/documentation/notification_signatures
"""

from datetime import timedelta

from providers.kit import Timestamp, body_digest, field, first, fixed, joined, one_event, signer
from providers.kit.digests import Digest
from providers.kit.fields import only_if

scheme = Digest(
    header="x-cld-signature",
    before="{body}{timestamp}",
    hashes=("sha1", "sha256"),
    timestamp=Timestamp(header="x-cld-timestamp", tolerance=timedelta(hours=2)),
)
verify, CHECK, TOLERANCE = scheme.verify, scheme.check_secret, scheme.timestamp.tolerance
sign = signer(scheme.sign)
_what = field("$.notification_type")
_asset = first(field("$.asset_id"), field("$.public_id"), field("$.batch_id"))
_version, _batch = field("$.version"), field("$.batch_id")
_stored = first(joined(_what, _asset, _version, _batch), joined(_what, _asset, _version))
events = one_event(
    id=first(only_if(_what, "upload|eager", _stored), body_digest()),
    type=first(_what, fixed("unknown")),
    occurred_at=first(field("$.timestamp"), field("$.created_at")),
)
RETRY_HORIZON = timedelta(hours=1)
SETUP = "https://console.cloudinary.com/settings/webhooks"
