"""MongoDB Atlas signs the body of an alert with HMAC-SHA1, in base64.

An alert's id comes with every change of it, so its status and the time of the change are part of the event's id; with
the time of the notice, as Atlas may be set to remind of it. The type is `X-MMS-Event` (`alert.open`), which is not
signed. An old page of the manual says that the signature is in hex; it is not.

https://www.mongodb.com/docs/atlas/tutorial/third-party-service-integrations/
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    body_digest,
    field,
    first,
    fixed,
    header,
    join,
    one_event,
    signer,
    told_apart_by,
)

scheme = Hmac(header="x-mms-signature", hash="sha1", encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign, type="x-mms-event", default_type="alert.open")
_change = join(field("$.id"), field("$.status"), field("$.updated"))
events = one_event(
    id=first(join(_change, field("$.lastNotified")), _change, body_digest()),
    former=(_change,),
    type=first(header("x-mms-event"), field("$.eventTypeName"), fixed("unknown")),
    account=field("$.groupId"),
    occurred_at=field("$.updated"),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("$.id + $.status + $.updated + $.lastNotified", "$.id + $.status + $.updated"),
    check_secret=scheme.check_secret,
    setup_url="https://cloud.mongodb.com/",
)
