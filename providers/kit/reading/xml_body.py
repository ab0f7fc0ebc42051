"""XML, read without what makes it dangerous: a document that declares anything (entities, a DTD) is refused."""

from base64 import b64decode
from collections.abc import Callable
from html import escape
from xml.etree import ElementTree as ET

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.reading.bodies import form_field

Element = ET.Element


def parse_xml(document: bytes) -> Element:
    """Return the root of `document`. Raises: Rejected(bad_body)."""
    if b"<!" in document or b"\x00" in document:
        raise Rejected(Reason.BAD_BODY, "the XML declares something, or is not in UTF-8")
    try:
        return ET.fromstring(document)  # noqa: S314  without declarations there is nothing to expand
    except (ET.ParseError, ValueError, LookupError):
        raise Rejected(Reason.BAD_BODY, "the body is not XML") from None


def xml_with(document: bytes, *paths: str) -> dict[str, str | None]:
    """Return the texts at `paths` of an XML document, and all of it under `xml`. Raises: Rejected(bad_body)."""
    root = parse_xml(document)
    return {path: text_at(root, path) for path in paths} | {"xml": document.decode("utf-8", "replace")}


def xml_in_base64(text: str, *paths: str) -> dict[str, str | None]:
    """`xml_with` of a document in base64, whatever its lines. Raises: Rejected(bad_body)."""
    try:
        return xml_with(b64decode(text.replace("\n", ""), validate=True), *paths)
    except ValueError:
        raise Rejected(Reason.BAD_BODY, "the XML is not in base64") from None


def xml_in_form(name: str, *paths: str) -> Callable[[Delivery], dict[str, str | None]]:
    """Make a reader of forms whose field `name` holds XML in base64: `xml_with` of it, and Rejected(bad_body)."""
    return lambda delivery: xml_in_base64(form_field(delivery, name), *paths)


def xml_sample(template: str) -> Callable[[str, str], bytes]:
    """Return a maker of samples: `template` with the event's id and type, escaped, at `{id}` and `{type}`."""
    return lambda event_id, kind: template.format(id=escape(event_id), type=escape(kind)).encode()


def text_at(root: Element, path: str) -> str | None:
    """Return the text at `path` (tags, separated by slashes) below `root`; None for none or a blank one."""
    found = root.find(path)
    text = (found.text or "").strip() if found is not None else ""
    return text or None
