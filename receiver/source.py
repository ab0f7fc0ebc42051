"""A source, one configured place that sends to us, and how a table of hookonce.toml becomes what the product uses.

A table is a frozen dataclass, which pydantic fills from the file: a setting is a field with the function that reads
it. A field that no file can hold (a name, a provider, a secret where the file has a reference) is `Resolved`, and set
with `dataclasses.replace` when the configuration is put together.
"""

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, PlainValidator

from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.reading.json_paths import Step, parse
from hookonce.providers.kit.registry.chosen_ids import ChosenIds, place
from hookonce.providers.kit.registry.declared_options import reason_for_one_id
from hookonce.receiver.durations import UNITS, format_duration, parse_duration

_Field = TypeVar("_Field")
TABLE: Final = ConfigDict(extra="forbid")
"""How a table is read: a setting that it does not have is a mistake."""
NOT_WRITTEN: Final = "(resolved)"
"""The alias of fields that are no settings."""
OPTIONS: Final = "(options)"
"""The alias of a source's sub-table that is named like its provider."""
_USER = re.compile(r"(\w+://)[^/?#]*@")
_LIMIT = re.compile(r"([1-9][0-9]{0,9})/([smhd])", re.ASCII)
_SIZE = re.compile(r"(\d{1,6})([kmg])b", re.ASCII)
_BYTES = {"k": 1000, "m": 1000**2, "g": 1000**3}
MAX_QUARANTINE_TIME = timedelta(days=30)
_MAX_WINDOW = 30 * 86400
FOREVER = timedelta.max
"""How long events are kept of a source that says so: they are never pruned."""
MIN_KEEP_EVENTS = timedelta(days=3)
"""Most senders retry for up to three days; an event forgotten before that would be handled again."""


@dataclass(frozen=True, slots=True)
class Limit:
    """So many in each period: a bucket that is full at first, and is filled again evenly."""

    count: int
    period: timedelta

    @classmethod
    def parse(cls, text: object) -> "Limit":
        """Read `600/m`. Raises: ValueError saying what was expected."""
        match = _LIMIT.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise ValueError('expected a whole number (1 to 9999999999) per s, m, h or d, like "600/m"')
        return cls(int(match[1]), UNITS[match[2]])

    @property
    def interval(self) -> timedelta:
        """How long it takes until there is one more."""
        return self.period / self.count


def _refuse(_: object) -> None:
    raise ValueError("is no setting; remove it")


Resolved = Annotated[_Field, PlainValidator(_refuse), Field(alias=NOT_WRITTEN)]
Required = Annotated[_Field, PlainValidator(_refuse), Field(alias=NOT_WRITTEN, default=None)]
"""A resolved field that has no default in Python."""


def outlasts_retries(kept: timedelta) -> timedelta:
    """Return it. Raises: ValueError for a time within which most senders still retry."""
    if kept < MIN_KEEP_EVENTS:
        raise ValueError("expected 3d or more, since a later retry would count as a new event")
    return kept


def _horizon(text: object) -> timedelta:
    if text == "forever":
        return FOREVER
    try:
        kept = parse_duration(text)
    except ValueError as error:
        raise ValueError(f'{error}; or "forever"') from None
    return outlasts_retries(kept)


def _size(text: object) -> int:
    parts = _SIZE.fullmatch(text.lower()) if isinstance(text, str) else None
    if parts is None or not int(parts[1]):
        raise ValueError("expected a number with its unit: 500kB, 10MB or 1GB")
    return int(parts[1]) * _BYTES[parts[2]]


def _bounded(time: timedelta) -> timedelta:
    if not timedelta(0) < time <= MAX_QUARANTINE_TIME:
        raise ValueError(f"expected {format_duration(MAX_QUARANTINE_TIME)} at most")
    return time


def seconds(value: object) -> timedelta:
    """Read a number of seconds. Raises: ValueError saying what was expected."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MAX_WINDOW:
        raise ValueError(f"expected seconds, more than 0 and {_MAX_WINDOW:,} at most")
    return timedelta(seconds=value)


def _places(places: tuple[str, ...]) -> tuple[str, ...]:
    """Return the places of an id. Raises: ValueError for those that tell no events apart."""
    for each in places:
        place(each)
    if len(set(places)) < len(places):
        raise ValueError("a place is named twice")
    reasons = [f"{each!r}, {why}" for each in places if (why := reason_for_one_id(each))]
    if places and len(reasons) == len(places):
        raise ValueError(
            f"it is {'; '.join(reasons)}: all events but the first would be duplicates; name a place that tells "
            "events apart, such as '$.order.id', or leave id out for the sender's own"
        )
    return places


def _place(text: str) -> str:
    place(text)
    return text


def steps(text: object) -> tuple[Step, ...]:
    """Read a path in a body. Raises: ValueError saying what was expected."""
    return parse(text if isinstance(text, str) else "")


Span = Annotated[timedelta, BeforeValidator(parse_duration)]
"""A time as people write it."""
Horizon = Annotated[timedelta, BeforeValidator(_horizon)]
"""How long events are kept, perhaps `forever`."""
Rate = Annotated[Limit, BeforeValidator(Limit.parse)]
"""A limit as people write it."""


@dataclass(frozen=True)
class Quarantine:
    """The bounds of a source's quarantine: `quarantine = true` stands for the defaults; needs `encryption_keys`."""

    __pydantic_config__ = TABLE

    count: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """deliveries at most; half of the room an hour"""
    size: Annotated[int, BeforeValidator(_size)] = 10_000_000
    """bytes of all of them, like `500kB`, `10MB` or `1GB`"""
    time: Annotated[Span, AfterValidator(_bounded)] = timedelta(days=7)
    """how long each stays; 30d at most, and a day less than `keep_events`"""
    reasons: tuple[Literal["bad_signature", "stale", "no_secret", "bad_body", "too_large"], ...] = (
        "bad_signature",
        "stale",
        "no_secret",
    )
    """for which of these it was rejected"""


@dataclass(frozen=True)
class Renewed:
    """A subscription in a source's `renew`."""

    __pydantic_config__ = TABLE

    resource: str
    """the watched resource, as the sender's API names it"""
    changes: str = "created,updated"
    """kinds of changes, of a sender that has them"""
    lasts: Span | None = None
    """for how long it is made at a time; two days at Graph, one at Google"""


@dataclass(frozen=True)
class Source:
    """A place that sends to us; a sub-table named like its provider holds the provider's options.

    Its URL path is `/hooks/<name>`. `secrets` may be empty where every reference was optional: deliveries are then
    answered 503 `no_secret`, unless the sender has handed out a secret (`receiver.intake.handshake_secrets`).
    """

    __pydantic_config__ = TABLE

    name: Required[str]
    provider: Required[Provider]
    """the sender's module, whose events have the ids that the operator chose"""
    secrets: Required[tuple[str, ...]] = field(repr=False)
    _: KW_ONLY
    sender: Annotated[str, Field(alias="provider")] = ""
    """the sender's; the source's own name by default"""
    options: Annotated[Mapping[str, Any] | None, Field(alias=OPTIONS)] = None
    references: Annotated[tuple[str, ...], Field(alias="secrets")] = ()
    """references; several while you rotate"""
    secret_names: Resolved[tuple[str, ...]] = ()
    """the reference of each secret (`env:NAME`), in their order; never a secret"""
    secret_notes: Resolved[tuple[str, ...]] = ()
    """quotes, blanks or a line end around the secrets, hardly a part of them"""
    broker: Annotated[str | None, Field(alias="from")] = field(default=None, repr=False)
    """[address of a broker](../how-to/consumers.md) that `hookonce consume` takes its deliveries from, or a reference
    to one; the source has no URL then"""
    authenticity: Literal["sender", "queue"] = "sender"
    """`"queue"`: who may write to the queue may send; the sender's signature is not asked for"""
    repeats: Literal["run", "hold"] | None = None
    """`"hold"`: a known body under a new, unsigned id waits for a person; `"run"`: it runs; unset: as [the
    senders' page](../providers.md) says of the sender"""
    conflicts: Literal["accept", "reject"] = "accept"
    """`"reject"`: answer 409 to another body under a known id"""
    window: Annotated[timedelta, BeforeValidator(seconds)] = timedelta(hours=1)
    """seconds that Redis remembers an id; the ledger far longer"""
    accept: Literal["live", "test"] | None = None
    """`"live"`: events of its sender's test mode are kept as ignored, and no handler gets them"""
    public_url: str = ""
    """as in `[receiver]`, for this source alone"""
    url: Resolved[str] = field(default="", repr=False)
    url_reference: Annotated[str, Field(alias="url")] = ""
    """the whole URL that its sender posts to, where a proxy rewrites the path: signatures that cover a URL
    are verified with it (and with the request's query, where it has none); a reference, like a secret,
    where there are credentials in it"""
    max_body: Annotated[int | None, Field(ge=1024, le=100 << 20)] = None
    """bytes of a delivery; 413 beyond; by default the sender's own largest, else as in `[receiver]`"""
    tolerance: Span | None = None
    """how old a signed time may be, if not as old as [the senders' page](../providers.md) says: for so long
    whoever has captured a delivery can send it again, and it must be a known id by then"""
    unauthenticated: bool = False
    """let anyone send; only where the sender proves nothing anyway"""
    redact: tuple[Annotated[tuple[Step, ...], BeforeValidator(steps)], ...] = ()
    """paths in bodies, like `$.card.number`, that are never stored"""
    quarantine: Annotated[
        Quarantine | None,
        BeforeValidator(lambda said: ({} if said else None) if isinstance(said, bool) else said),
    ] = None
    """keep rejected deliveries whole, sealed: `true`, or a table with bounds"""
    expect_every: Span | None = None
    """a longer silence raises an alert; without it, the rhythm is learned"""
    tests: bool = False
    """let administrators send test events (`event.is_test`); `hookonce dev` always does"""
    id: Annotated[
        tuple[str, ...],
        BeforeValidator(lambda said: [said] if isinstance(said, str) else said),
        AfterValidator(_places),
    ] = ()
    """places that tell events apart, instead of the sender's id: `["$.order.id", "$.status"]`"""
    account: Annotated[str, AfterValidator(_place)] = ""
    """the place of an event's account, like `$.account`"""
    scope_ids_by_account: bool = False
    """an id of two accounts is two events"""
    keep_body: bool = True
    """`false`: a body is gone as soon as each handler has succeeded"""
    keep_events: Horizon | None = None
    """how long its ids are known, or `"forever"`; as in `[receiver]` by default"""
    rate: Rate | None = None
    """deliveries that may come, like `600/m` (s, m, h or d)"""
    quota: Rate | None = None
    """events that may come, like `1000000/d`; a batch has many"""
    api_key: str = ""
    """reference to a key of the sender's API, for `reconcile` and `renew`; only the sweep looks it up"""
    api: Annotated[str, AfterValidator(lambda said: said.rstrip("/"))] = ""
    """address of what is asked there, of senders that have one for each hook: [how](../how-to/reconcile.md)"""
    reconcile: Span | None = None
    """how often its sender is asked what it sent, and for what is missing"""
    renew: tuple[Renewed, ...] = ()
    """subscriptions that the sweep makes and renews, as tables with `resource`, `changes` and `lasts`:
    [how](../how-to/renew.md)"""
    over_limit: Literal["hold", "refuse"] | None = None
    """beyond these: `"hold"` accepts and puts off; by default `"refuse"` only where that is safe"""
    refuses_with: Resolved[int | None] = None
    """the status for what is beyond a limit; None where it is accepted and put off"""

    @cached_property
    def chosen(self) -> ChosenIds:
        """The places of its ids and accounts that the operator chose; the provider's events have them already."""
        return ChosenIds(self.id, self.account, self.scope_ids_by_account)

    @property
    def asks(self) -> bool:
        """Whether its sender's API is asked for anything."""
        return bool(self.api_key or self.api or self.reconcile or self.renew)

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
