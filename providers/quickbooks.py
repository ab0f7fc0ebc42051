"""QuickBooks signs the body with HMAC-SHA256, in base64, in `intuit-signature`; the key is the verifier token.

Deliveries are batches in one of two shapes, told apart by the body. CloudEvents: a list, each with an id, a type
(`qbo.invoice.created.v1`) and an account. The older one: `eventNotifications` of several companies, whose
entities have no ids; theirs is made of company, name, id, operation and time, the type is `Invoice.Create`.
Each event is a delivery of one. Retries after 20, 30 and 50 minutes.

https://developer.intuit.com/app/developer/qbo/docs/develop/webhooks
"""

from datetime import timedelta

from hookonce.providers.kit import (
    Hmac,
    Sender,
    cut,
    field,
    first,
    join,
    signer,
    split_events,
    told_apart_by,
)

scheme = Hmac(header="intuit-signature", encoding="base64")
verify = scheme.verify
sign = signer(scheme.sign)
_OLDER = ("eventNotifications", None, "dataChangeEvent", "entities", None)
_realm = field("$.eventNotifications[0].realmId")
_entity = "$.eventNotifications[0].dataChangeEvent.entities[0]"
_name, _operation, _updated = (field(f"{_entity}.{name}") for name in ("name", "operation", "lastUpdated"))
events = split_events(
    pieces=lambda data: cut(data, (None,) if isinstance(data, list) else _OLDER),
    id=first(field("$[0].id"), join(_realm, _name, field(f"{_entity}.id"), _operation, _updated)),
    type=first(field("$[0].type"), join(_name, _operation, by=".")),
    account=first(field("$[0].intuitaccountid"), _realm),
    occurred_at=first(field("$[0].time"), _updated),
)

sender = Sender(
    id_is_signed=True,
    retry_horizon=timedelta(days=1),
    identity=told_apart_by("$[*].id", "$.eventNotifications[*].dataChangeEvent.entities[*].lastUpdated"),
    check_secret=scheme.check_secret,
    setup_url="https://developer.intuit.com/dashboard",
)
