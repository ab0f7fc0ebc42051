"""Box signs `<body><BOX-DELIVERY-TIMESTAMP>` with HMAC-SHA256, in base64, once for each of two keys.

The signatures are in `BOX-SIGNATURE-PRIMARY` and `-SECONDARY`; either key may be configured, or both, and keys
can so be replaced one at a time. The time may be ten minutes off, as in Box' SDK (which takes none from the
future). The id is `$.id`; a body without one has that of the delivery, which is not signed and new for each
attempt.

https://developer.box.com/guides/webhooks/v2/signatures-v2/
"""

from datetime import timedelta

from providers.kit import Hmac, Timestamp, field, first, header, one_event, signer

scheme = Hmac(
    header=("box-signature-primary", "box-signature-secondary"),
    every=True,
    encoding="base64",
    signed="{body}{timestamp}",
    timestamp=Timestamp(header="box-delivery-timestamp", unit="iso", tolerance=timedelta(minutes=10)),
)
verify, CHECK, TOLERANCE = scheme.verify, scheme.check_secret, scheme.tolerance
sign = signer(scheme.sign, event_id="box-delivery-id")
events = one_event(
    id=first(field("$.id"), header("box-delivery-id")),
    type=field("$.trigger"),
    account=first(field("$.webhook.id"), field("$.created_by.id")),
    occurred_at=field("$.created_at"),
)
ID_IS_SIGNED = False
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://app.box.com/developers/console"
