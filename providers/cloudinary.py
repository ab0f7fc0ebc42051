"""Cloudinary hashes `<body><time><API secret>` with SHA-1 or SHA-256 (no HMAC), in hex in `X-Cld-Signature`.

Which hash is a setting of the account (`signature_algorithm`), SHA-1 unless changed; they are told apart by their
length. The secret is the API secret. There is no id: which version of which asset was uploaded is the event, and in
which batch of transformations; what else is told of an asset (moderation, analysis) comes more than once for a
version and is known by its fingerprint. Cloudinary tries three times in nine minutes; its SDK takes a time of two
hours ago.

https://cloudinary.com/documentation/notification_signatures
"""

from hookonce.providers import kit

scheme = kit.KeyedDigest(
    header="x-cld-signature",
    before="{body}{timestamp}",
    hashes=("sha1", "sha256"),
    timestamp=kit.Timestamp(header="x-cld-timestamp", tolerance=kit.hours(2)),
)
_what = kit.field("$.notification_type")
_asset = kit.first("$.asset_id", "$.public_id", "$.batch_id")
_version = kit.field("$.version")
_batch = kit.field("$.batch_id")
_stored = kit.first(kit.join(_what, _asset, _version, _batch), kit.join(_what, _asset, _version))
events = kit.one_event(
    id=kit.or_body(kit.when_matches(_what, "upload|eager", _stored)),
    type=kit.or_unknown(_what),
    occurred_at=kit.first("$.timestamp", "$.created_at"),
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.hours(1),
    identity=kit.told_apart_by(
        "$.notification_type + $.asset_id + $.version",
        "body",
        because="what else is told of an asset has a time, a request or a status",
    ),
    tolerance=scheme.timestamp.tolerance,
    setup_url="https://console.cloudinary.com/settings/webhooks",
)
