"""Cloudinary hashes `<body><time><API secret>` with SHA-1 or SHA-256 (no HMAC), in hex in `X-Cld-Signature`.

Which hash is a setting of the account (`signature_algorithm`), SHA-1 unless changed; they are told apart by their
length. The secret is the API secret. There is no id: which version of which asset was uploaded is the event, and in
which batch of transformations; what else is told of an asset (moderation, analysis) comes more than once for a
version and is known by its fingerprint. Cloudinary tries three times in nine minutes; its SDK takes a time of two
hours ago.

https://cloudinary.com/documentation/notification_signatures
"""

from datetime import timedelta

from hookonce.providers.kit import (
    KeyedDigest,
    Sender,
    Timestamp,
    body_digest,
    field,
    first,
    fixed,
    join,
    one_event,
    signer,
    told_apart_by,
    when_matches,
)

scheme = KeyedDigest(
    header="x-cld-signature",
    before="{body}{timestamp}",
    hashes=("sha1", "sha256"),
    timestamp=Timestamp(header="x-cld-timestamp", tolerance=timedelta(hours=2)),
)
verify = scheme.verify
sign = signer(scheme.sign)
_what = field("$.notification_type")
_asset = first(field("$.asset_id"), field("$.public_id"), field("$.batch_id"))
_version = field("$.version")
_batch = field("$.batch_id")
_stored = first(join(_what, _asset, _version, _batch), join(_what, _asset, _version))
events = one_event(
    id=first(when_matches(_what, "upload|eager", _stored), body_digest()),
    type=first(_what, fixed("unknown")),
    occurred_at=first(field("$.timestamp"), field("$.created_at")),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(hours=1),
    identity=told_apart_by(
        "$.notification_type + $.asset_id + $.version",
        "body",
        because="what else is told of an asset has a time, a request or a status",
    ),
    tolerance=scheme.timestamp.tolerance,
    check_secret=scheme.check_secret,
    setup_url="https://console.cloudinary.com/settings/webhooks",
)
