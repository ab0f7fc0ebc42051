"""The signed message, written as a template: `{body}`, `v0:{timestamp}:{body}`, `{header:x-id}{body}`.

`{params}` is a form's fields without any separator, each name followed by its value, sorted by both, what
comes twice only once. `{path}` is our URL without scheme and host, and `{sha256}` the body's SHA-256 in hex, which
`{sha256:base64}` spells otherwise and `{sha256:raw}` leaves as bytes; `{sha512}` likewise.

Parsed once when the provider is loaded. Everything outside the braces is signed as it stands; a doubled brace
is one brace.
"""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256, sha512
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from hookonce.providers import Delivery
from hookonce.providers.kit.reading.bodies import form_pairs, header_name, header_of, octets

Part = Callable[[Delivery, bytes], bytes]
"""One piece of a template, literal or not."""
Template = Callable[[Delivery, bytes], bytes]
"""From a delivery and its signed time (as sent) to the signed bytes."""

_HOLE: Final = re.compile(r"\{\{|\}\}|\{([a-z0-9]+)(?::([A-Za-z0-9_-]+))?\}")
_PARTS: Final[dict[str, Part]] = {
    "body": lambda delivery, _: delivery.body,
    "timestamp": lambda _, timestamp: timestamp,
    "url": lambda delivery, _: delivery.url.encode("utf-8", "surrogatepass"),
    "path": lambda delivery, _: _path(delivery.url).encode("utf-8", "surrogatepass"),
    "params": lambda delivery, _: _params(delivery),
    "method": lambda delivery, _: delivery.method.encode("utf-8", "surrogatepass"),
}
_HASHES: Final = {"sha256": sha256, "sha512": sha512}
_SPELLED: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "hex": lambda digest: digest.hex().encode(),
    "base64": b64encode,
    "base64url": lambda digest: urlsafe_b64encode(digest).rstrip(b"="),
    "raw": bytes,
}
_KNOWN: Final = "{body}, {sha256}, {params}, {timestamp}, {url}, {path}, {method} or {header:name}"


def template(text: str) -> Template:
    """Compile `text`. The result raises Rejected(missing_header) for a `{header:…}` that was not sent.

    Raises: ValueError naming the hole that has no meaning, or a header that never arrives.
    """
    if text == "{body}":
        return _PARTS["body"]
    parts = _parts(text)
    return lambda delivery, timestamp: b"".join([part(delivery, timestamp) for part in parts])


def signs_body(text: str) -> bool:
    """Whether what a template makes covers the body."""
    return any(hole[1] in {"body", "params", *_HASHES} for hole in _HOLE.finditer(text))


def _parts(text: str) -> list[Part]:
    parts: list[Part] = []
    at = 0
    for hole in _HOLE.finditer(text):
        if hole.start() > at:
            parts.append(_literal(text[at : hole.start()]))
        parts.append(_part(hole))
        at = hole.end()
    if at < len(text):
        parts.append(_literal(text[at:]))
    return parts


def _part(hole: re.Match[str]) -> Part:
    name, header = hole.groups()
    if name is None:
        return _literal(hole[0][0], escaped=True)
    if name == "header" and header:
        return _header(header_name(header))
    if name in _PARTS and not header:
        return _PARTS[name]
    if name in _HASHES and (header or "hex") in _SPELLED:
        return _digest(name, header or "hex")
    msg = f"{hole[0]!r} is not something that is signed, expected {_KNOWN}"
    raise ValueError(msg)


def _path(url: str) -> str:
    return urlunsplit(urlsplit(url)._replace(scheme="", netloc="", fragment=""))


def _params(delivery: Delivery) -> bytes:
    return "".join(name + value for name, value in sorted(set(form_pairs(delivery)))).encode()


def _header(name: str) -> Part:
    return lambda delivery, _: octets(*header_of(delivery.headers, (name,)))


def _digest(name: str, spelling: str) -> Part:
    hashed, spelled = _HASHES[name], _SPELLED[spelling]
    return lambda delivery, _: spelled(hashed(delivery.body).digest())


def _literal(text: str, *, escaped: bool = False) -> Part:
    if not escaped and ("{" in text or "}" in text):
        msg = f"{text!r} has a brace that is neither closed nor doubled"
        raise ValueError(msg)
    raw = text.encode()
    return lambda _, __: raw
