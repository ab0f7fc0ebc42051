"""QuickBooks signs the body with HMAC-SHA256, in base64, in `intuit-signature`; the key is the verifier token.

Deliveries are batches in one of two shapes, told apart by the body. CloudEvents: a list, each with an id, a type
(`qbo.invoice.created.v1`) and an account. The older one: `eventNotifications` of several companies, whose entities
have no ids; theirs is made of company, name, id, operation and time, the type is `Invoice.Create`. Each event is cut
out into a body of its own, so `[0]` in a path is that one. Retries after 20, 30 and 50 minutes.

https://developer.intuit.com/app/developer/qbo/docs/develop/webhooks
"""

from hookonce.providers import kit

_OLDER = ("eventNotifications", None, "dataChangeEvent", "entities", None)
_realm = kit.field("$.eventNotifications[0].realmId")
_entity = "$.eventNotifications[0].dataChangeEvent.entities[0]"
_name, _operation, _updated = (
    kit.field(f"{_entity}.{name}") for name in ("name", "operation", "lastUpdated")
)
events = kit.split_events(
    pieces=lambda data: kit.cut(data, (None,) if isinstance(data, list) else _OLDER),
    id=kit.first("$[0].id", kit.join(_realm, _name, kit.field(f"{_entity}.id"), _operation, _updated)),
    type=kit.first("$[0].type", kit.join(_name, _operation, by=".")),
    account=kit.first("$[0].intuitaccountid", _realm),
    occurred_at=kit.first("$[0].time", _updated),
)
sender = kit.Sender(
    scheme=kit.Hmac(header="intuit-signature", encoding="base64"),
    id_is_signed=True,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("$[*].id", "$.eventNotifications[*].dataChangeEvent.entities[*].lastUpdated"),
    setup_url="https://developer.intuit.com/dashboard",
)
