"""MongoDB Atlas signs the body of an alert with HMAC-SHA1, in base64.

An alert's id comes with every change of it, so its status and the time of the change are part of the event's id; with
the time of the notice, as Atlas may be set to remind of it. The type is `X-MMS-Event` (`alert.open`), which is not
signed. An old page of the manual says that the signature is in hex; it is not.

https://www.mongodb.com/docs/atlas/tutorial/third-party-service-integrations/
"""

from hookonce.providers import kit

scheme = kit.Hmac(header="x-mms-signature", hash="sha1", encoding="base64")
sign = kit.signer(scheme.sign, type="x-mms-event", default_type="alert.open")
_change = kit.join("$.id", "$.status", "$.updated")
events = kit.one_event(
    id=kit.or_body(kit.join(_change, "$.lastNotified"), _change),
    type=kit.or_unknown("header x-mms-event", "$.eventTypeName"),
    account="$.groupId",
    occurred_at="$.updated",
)
sender = kit.Sender(
    scheme=scheme,
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$.id + $.status + $.updated + $.lastNotified", "$.id + $.status + $.updated"),
    setup_url="https://cloud.mongodb.com/",
)
