"""`[forwards.NAME]`: events that go on to a broker or an endpoint, by a handler that the configuration makes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from hookonce.receiver.config.addresses import Address, address_of
from hookonce.receiver.config.secret_references import WorkersSecret
from hookonce.receiver.config.sources import SOURCE_NAME
from hookonce.receiver.source import TABLE, Required

BACKOFF = (timedelta(seconds=5), timedelta(hours=1))
AS_SENDER, STANDARD = "as sender", "standard webhooks"


@dataclass(frozen=True, kw_only=True)
class Forward:
    """Events that go on to a broker or an endpoint.

    `address` is None, and `secret` empty, where the reference leads nowhere in this environment.
    """

    __pydantic_config__ = TABLE

    name: Required[str]
    address: Required[Address | None]
    source: Annotated[str, Field(alias="from")]
    """source, or provider, whose events go on"""
    types: Annotated[tuple[str, ...], Field(min_length=1)] = ("*",)
    """event types; `*` is any run of characters"""
    when: str = ""
    """JMESPath on an event's data: where it is false, null or empty, the event stays; needs the extra `jmespath`"""
    to: str = field(repr=False)
    """[address](../how-to/forwards.md), or a reference to one: `env:NAME`"""
    sign: Literal["standard webhooks", "as sender"] = "standard webhooks"
    """signature of what goes to an endpoint"""
    secret: WorkersSecret | None = field(default=None, repr=False)
    """reference to the secret that signs; with `"as sender"` the first one of the source by default"""
    allow_private: bool = False
    """let an endpoint have a private address, and `http://` there"""
    attempts: Annotated[int, Field(ge=1, le=1000)] = 14
    """as of any handler, the first included"""

    @property
    def handler(self) -> str:
        """The name of its handler."""
        return f"forwards.{self.name}"

    @property
    def secrets(self) -> list[str]:
        """The secret that it signs with, credentials of its address, and an address that a reference names."""
        if self.address is None:
            return [self.secret or ""]
        is_reference = self.to != self.address.written
        return [self.secret or "", self.address.password, *([self.address.url] if is_reference else [])]

    @property
    def retries_last(self) -> timedelta:
        """How long attempts may go on, as far as they are counted."""
        first, longest = BACKOFF
        return sum((min(longest, first * 2 ** min(n, 30)) for n in range(self.attempts - 1)), timedelta(0))


def read_forwards(
    tables: Mapping[str, Forward], environ: Mapping[str, str], mistakes: list[str]
) -> dict[str, Forward]:
    """Return the forwards by their tables, adding to `mistakes`; a reference that leads nowhere here is none."""
    found = {}
    for name, table in tables.items():
        wrong: list[str] = []
        if not SOURCE_NAME.fullmatch(name):
            wrong.append("the name must be 1 to 63 of a-z 0-9 _ - and start with a letter or digit")
        address = address_of(table.to, environ, wrong, "to")
        if address is not None:
            wrong += _mistakes(table, address)
        mistakes += [f"[forwards.{name}] {each}" for each in wrong]
        found[name] = replace(table, name=name, address=address)
    return found


def _mistakes(table: Forward, address: Address) -> list[str]:
    if address.kind != "https":
        is_signed = table.secret is not None or table.sign == AS_SENDER
        return ["has sign or secret, which are of endpoints (https://); remove them"] if is_signed else []
    wrong = []
    if table.sign == STANDARD and table.secret is None:
        wrong.append('has no secret to sign with; set secret = "env:NAME", or sign = "as sender"')
    if address.url.startswith("http:") and not table.allow_private:
        wrong.append("to: http:// is for private addresses; set allow_private = true, or write https://")
    return wrong
