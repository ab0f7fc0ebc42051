"""MongoDB Atlas signs the body of an alert with HMAC-SHA1, in base64.

An alert's id comes with every change of it, so its status and the time of the change are part of the event's
id. The type is `X-MMS-Event` (`alert.open`), which is not signed. An old page of the manual says that the
signature is in hex; it is not.

https://www.mongodb.com/docs/atlas/tutorial/third-party-service-integrations/
"""

from datetime import timedelta

from providers.kit import Hmac, body_digest, field, first, fixed, header, joined, one_event, signer

scheme = Hmac(header="x-mms-signature", hash="sha1", encoding="base64")
verify, CHECK = scheme.verify, scheme.check_secret
sign = signer(scheme.sign, type="x-mms-event", default_type="alert.open")
events = one_event(
    id=first(joined(field("$.id"), field("$.status"), field("$.updated")), body_digest()),
    type=first(header("x-mms-event"), field("$.eventTypeName"), fixed("unknown")),
    account=field("$.groupId"),
    occurred_at=field("$.updated"),
)
RETRY_HORIZON = timedelta(days=1)
SETUP = "https://cloud.mongodb.com/"
