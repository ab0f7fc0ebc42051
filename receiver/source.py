"""A source: one configured place that sends to us."""

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Literal, NamedTuple

from pydantic import ConfigDict, Field
from pydantic import dataclasses as checked

from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.reading.json_paths import Step
from hookonce.providers.kit.registry.chosen_ids import ChosenIds

_USER = re.compile(r"(\w+://)[^/?#]*@")
MAX_QUARANTINE_TIME = timedelta(days=30)
_TABLE = ConfigDict(extra="forbid")
FOREVER = timedelta.max
"""How long events are kept of a source that says so: they are never pruned."""


@dataclass(frozen=True, slots=True)
class Limit:
    """So many in each period: a bucket that is full at first, and is filled again evenly."""

    count: int
    period: timedelta

    @property
    def interval(self) -> timedelta:
        """How long it takes until there is one more."""
        return self.period / self.count


@checked.dataclass(frozen=True, slots=True, config=_TABLE)
class Quarantine:
    """The bounds of a source's quarantine: `quarantine = true` stands for the defaults; needs `encryption_keys`."""

    count: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """deliveries at most; half of the room an hour"""
    size: int = 10_000_000
    """bytes of all of them, like `500kB`, `10MB` or `1GB`"""
    time: timedelta = timedelta(days=7)
    """how long each stays; 30d at most, and a day less than `keep_events`"""
    reasons: tuple[Literal["bad_signature", "stale", "no_secret", "bad_body", "too_large"], ...] = (
        "bad_signature",
        "stale",
        "no_secret",
    )
    """for which of these it was rejected"""


@checked.dataclass(frozen=True, slots=True, config=_TABLE)
class Renewed:
    """A subscription in a source's `renew`."""

    resource: str
    """the watched resource, as the sender's API names it"""
    changes: str = "created,updated"
    """kinds of changes, of a sender that has them"""
    lasts: timedelta | None = None
    """for how long it is made at a time; two days at Graph, one at Google"""


class SenderApi(NamedTuple):
    """Questions to a sender: the key for them, by its reference, the address, how often, and what is renewed."""

    key: str
    api: str
    every: timedelta | None
    renewed: tuple[Renewed, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """One configured place that sends to us; its URL path is `/hooks/<name>`.

    `secrets` may be empty when every reference was optional: deliveries are then answered 503 `no_secret`, unless
    the sender has handed out a secret (`receiver.intake.handshake_secrets`).
    `unauthenticated`: anyone may send, which only a sender that proves nothing can be configured to.
    `redact`: places in the bodies of its events that are never stored.
    `quarantine`: which of its rejected deliveries are kept whole, and how many.
    `expect_every`: a longer silence raises an alert.
    `tests`: operators may send it test events.
    `references`: where its secrets are looked for, as the configuration says it; never a secret.
    `chosen`: where the operator wants its ids and accounts to be; the provider's events have them already.
    `keep_body`: without it, a body is gone as soon as every handler has succeeded.
    `keep_events`: how long its ids are known, `FOREVER` perhaps; None for as long as all others.
    `rate` of its deliveries, `quota` of its events: what is beyond is refused with the status `refuses_with`, or
    accepted and put off where that is None.
    `secret_names`: the reference of each secret (`env:NAME`), in their order; never a secret.
    `accept`: the one mode of its sender, `live` or `test`, whose events are handled; None for both.
    `secret_notes`: what stands around its secrets and is hardly a part of them: quotes, blanks, a line end.
    `max_body`: bytes that a delivery may have, if other than its sender's usual; `tolerance`: how old a signed time may
    be, if other than the sender's.
    `url`: the whole URL that its sender posts to, where that is not `public_url` and the path; a secret where
    `url_reference` says where it is looked for, or where credentials are in it.
    `sender_api`: what its sender is asked for; None where it is not asked.
    `broker`: the address that its deliveries are taken from, '' where it is not known here; None for a URL of ours.
    `authenticity`: what proves a delivery: its sender's signature, or that it lay in the queue.
    """

    name: str
    provider: Provider
    secrets: tuple[str, ...] = field(repr=False)
    repeats: Literal["run", "hold"] = "run"
    conflicts: Literal["accept", "reject"] = "accept"
    window: timedelta = timedelta(hours=1)
    public_url: str = ""
    unauthenticated: bool = False
    redact: tuple[tuple[Step, ...], ...] = ()
    quarantine: Quarantine | None = None
    expect_every: timedelta | None = None
    tests: bool = False
    references: tuple[str, ...] = ()
    chosen: ChosenIds = field(default_factory=ChosenIds)
    keep_body: bool = True
    keep_events: timedelta | None = None
    rate: Limit | None = None
    quota: Limit | None = None
    refuses_with: int | None = None
    secret_names: tuple[str, ...] = ()
    secret_notes: tuple[str, ...] = ()
    max_body: int | None = None
    tolerance: timedelta | None = None
    accept: Literal["live", "test"] | None = None
    url: str = field(default="", repr=False)
    url_reference: str = ""
    sender_api: SenderApi | None = None
    broker: str | None = field(default=None, repr=False)
    authenticity: Literal["sender", "queue"] = "sender"

    def url_of(self, path: str = "", query: str = "") -> str:
        """Return the URL of a delivery as the sender knows it; `path` is the one that came, if it is not the usual."""
        url = self.url or self.public_url + (path or f"/hooks/{self.name}")
        return f"{url}?{query}" if query and "?" not in url else url

    @property
    def shown_url(self) -> str:
        """The URL that its sender posts to, or its broker's, without credentials and what else is secret in it."""
        if self.broker is not None:
            return _USER.sub(r"\1", self.broker) or "a broker"
        url, mark, query = _USER.sub(r"\1[secret]@", self.url_of()).partition("?")
        return url + mark + ("[secret]" if self.url_reference and mark else query)

    def signed_url(self, kept: str) -> str:
        """Return the URL of a delivery from the one that is kept, in which `url` is masked."""
        shown = self.shown_url
        return self.url + kept[len(shown) :] if self.url and kept.startswith(shown) else kept

    def body_limit(self, usual: int) -> int:
        """Return how many bytes a delivery may have, `usual` where neither the source nor its sender says so."""
        return self.max_body or self.provider.max_body or usual

    @property
    def secret_places(self) -> str:
        """The variables or files to set for it to have a secret, by name."""
        named = [reference.partition(":")[2].removesuffix("?") for reference in self.references]
        return " or ".join(named) or f"HOOKONCE_SECRET__{self.name.upper()}"

    def secret_name(self, slot: int) -> str:
        """Return the reference of the secret in a slot (from 1), or that it has been taken away."""
        return (
            self.secret_names[slot - 1] if slot <= len(self.secret_names) else f"secret {slot}, removed since"
        )
