"""Addresses of brokers and endpoints, as `to` of a forward and `from` of a source have them.

nats://host:4222/orders.paid?durable=shop    a subject of a JetStream stream; tls:// with TLS
sqs:https://sqs.eu-central-1.amazonaws.com/123456789012/orders.fifo    the URL of a queue
amqps://host/vhost?queue=orders    or ?exchange=events&routing_key=paid
https://hooks.example.com/hooks/stripe
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from hookonce.receiver.config.secret_references import Reference, resolve

KINDS: Final = {
    "nats": "nats",
    "tls": "nats",
    "sqs": "sqs",
    "amqp": "rabbitmq",
    "amqps": "rabbitmq",
    "https": "https",
    "http": "https",
}
_SUBJECT: Final = re.compile(r"[^\s/.]+(\.[^\s/.]+)*")
_USER: Final = re.compile(r"(\w+://)[^/?#]*@")
_MARK: Final = 12
"""Hexadecimal digits of an address's fingerprint."""


def mark_of(place: str) -> str:
    """Return the fingerprint of an address without credentials: what tells forwarded events where they were."""
    return hashlib.sha256(_USER.sub(r"\1", place).rstrip("/").encode()).hexdigest()[:_MARK]


@dataclass(frozen=True, slots=True)
class Address:
    """The place of messages; `url` may hold secrets, `shown` does not. `options` are those of the query."""

    kind: str
    url: str = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> "Address":
        """Read an address. Raises: ValueError saying what was expected, without the address."""
        scheme = text.partition(":")[0]
        if scheme not in KINDS:
            known = "nats://, tls://, sqs:, amqp://, amqps:// or https://"
            raise ValueError(f"is not an address of a known kind; expected one that begins with {known}")
        url = text.removeprefix("sqs:")
        url = f"https:{url}" if url.startswith("//") else url
        try:
            parts = urlsplit(url)
            is_whole = bool(parts.hostname) and (parts.port or 1) > 0
        except ValueError:
            is_whole = False
        if not is_whole:
            raise ValueError("is not a whole address; expected a host after //")
        found = cls(KINDS[scheme], url)
        if wrong := found.lacks():
            raise ValueError(wrong)
        return found

    def lacks(self) -> str:
        """Return what its kind needs and the address does not say; '' for nothing."""
        if self.kind == "nats" and not _SUBJECT.fullmatch(self.path):
            return "names no subject; expected one as in nats://host:4222/orders.paid"
        if self.kind == "sqs" and (
            urlsplit(self.url).scheme not in {"http", "https"} or "/" not in self.path
        ):
            return "names no queue; expected its URL, as in sqs:https://sqs.eu-central-1.amazonaws.com/123/orders"
        if self.kind == "rabbitmq" and ("queue" in self.options) == ("exchange" in self.options):
            return (
                "names no queue and no exchange, or both; expected one, as in amqp://host/vhost?queue=orders"
            )
        return ""

    @property
    def path(self) -> str:
        """The path, without its first slash: a subject, a queue, a virtual host."""
        return unquote(urlsplit(self.url).path.removeprefix("/"))

    @property
    def options(self) -> dict[str, str]:
        """The parameters of the query."""
        return dict(parse_qsl(urlsplit(self.url).query))

    @property
    def server(self) -> str:
        """The URL without the query, and for NATS without the subject."""
        parts = urlsplit(self.url)._replace(query="", fragment="")
        return parts._replace(path="").geturl() if self.kind == "nats" else parts.geturl()

    @property
    def shown(self) -> str:
        """The address without user and password; of an endpoint, whose path may be a secret, scheme and host."""
        if self.kind != "https":
            return _USER.sub(r"\1", self.written)
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    @property
    def written(self) -> str:
        """The address as `parse` reads it."""
        return ("sqs:" if self.kind == "sqs" else "") + self.url

    @property
    def mark(self) -> str:
        """The fingerprint of the address."""
        return mark_of(self.url.partition("?")[0] if self.kind == "https" else self.shown)

    @property
    def password(self) -> str:
        """The password, or a user without one, which is a token; '' where there is neither."""
        parts = urlsplit(self.url)
        return unquote(parts.password or parts.username or "")


def address_of(text: str, environ: Mapping[str, str], wrong: list[str], key: str) -> Address | None:
    """Return an address, itself or what a reference names; None where there is none here, or it is wrong."""
    is_reference = Reference.parse(text) is not None
    try:
        url = resolve(text.removesuffix("?") + "?", environ) if is_reference else text
        found = Address.parse(url) if url else None
    except ValueError as error:
        wrong.append(f"{key}: {error}" if is_reference else f"{key}: it {error}")
        return None
    if found is not None and found.password and not is_reference:
        wrong.append(
            f'{key}: a password or a token stands in the file; write {key} = "env:NAME" and set that variable'
        )
    return found
