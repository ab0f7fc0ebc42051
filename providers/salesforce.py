"""Salesforce's outbound messages (SOAP) prove nothing: a secret at the end of the URL tells them from others.

A message has up to 100 notifications, each with an `Id` that stays the same on every attempt. They are
acknowledged together, in SOAP; anything else is tried again for a day. The `SessionId` beside them opens the
organisation's API: it is in no event and is not kept. An event's data are the fields of its object, by name;
its type is the object's.

https://developer.salesforce.com/docs/atlas.en-us.api.meta/api/sforce_api_om_outboundmessaging.htm
"""

from typing import Final
from xml.etree import ElementTree as ET

from hookonce.providers import Delivery, Event, Reason, Rejected, Reply, kit, unreadable

_NS: Final = "{http://soap.sforce.com/2005/09/outbound}"
_TYPE: Final = "{http://www.w3.org/2001/XMLSchema-instance}type"
_ENVELOPE: Final = (
    '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/">'
    '<soapenv:Body><notificationsResponse xmlns="http://soap.sforce.com/2005/09/outbound"><Ack>true</Ack>'
    "</notificationsResponse></soapenv:Body></soapenv:Envelope>"
)


def events(delivery: Delivery) -> list[Event]:
    """The notifications, each an event. Raises: Rejected(bad_body)."""
    text = kit.text_of(delivery.body)
    if "<!" in text.replace("<![CDATA[", ""):
        raise Rejected(Reason.BAD_BODY, "the body declares entities, which Salesforce does not")
    try:
        root = ET.fromstring(text.encode())  # noqa: S314  see the import
    except (ET.ParseError, ValueError, LookupError, RecursionError):
        raise Rejected(Reason.BAD_BODY, "the body is not XML") from None
    found = root.find(f".//{_NS}notifications")
    if found is None:
        raise Rejected(Reason.BAD_BODY, "the body is not an outbound message")
    account = found.findtext(f"{_NS}OrganizationId")
    return [_event(each, account) for each in found.findall(f"{_NS}Notification")]


def _event(notification: ET.Element, account: str | None) -> Event:
    number = notification.findtext(f"{_NS}Id")
    thing = notification.find(f"{_NS}sObject")
    raw = ET.tostring(notification)
    if not number or thing is None:
        why = Rejected(Reason.BAD_BODY, "a notification lacks its Id or its sObject")
        return unreadable(raw, why, account=account, raw=raw)
    data = {each.tag.rpartition("}")[2]: each.text for each in thing}
    kind = thing.get(_TYPE, "sObject").rpartition(":")[2]
    return Event(number, kind or "sObject", data, account, raw=raw)


sender = kit.Sender(
    scheme=kit.Token(path=True),
    id_is_signed=False,
    retry_horizon=kit.days(1),
    identity=kit.told_apart_by("xml Notification/Id"),
    accepted=Reply(body=_ENVELOPE.encode(), content_type="text/xml"),
    setup_url="https://help.salesforce.com/s/articleView?id=platform.workflow_managing_outbound_messages.htm",
)
