"""The declaration of a provider's module, typed: a wrong name fails at import and in mypy, a lacking answer too.

    sender = Sender(
        scheme=Hmac(header="acme-signature"),
        id_is_signed=True,
        retry_horizon=timedelta(days=3),
        identity=told_apart_by("$.id"),
    )

A module has `events` besides. `verify`, `sign`, `check_secret` and `tolerance` are the scheme's, unless the module
has its own; a function of the module called `handshake`, `deliver`, `sample` or `decode` is used, unless another one
is named here.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol, Unpack

from hookonce.providers import Delivery, Event, Reason, Reply
from hookonce.providers.kit.calls import Listing, Renewal
from hookonce.providers.kit.events.fields import Extractor
from hookonce.providers.kit.events.identity import Identity
from hookonce.providers.kit.events.subjects import About
from hookonce.providers.kit.signing.verdict import Sign, SignOptions

Verify = Callable[[Delivery, Sequence[str], datetime], None]
"""`verify` of a provider; it may have the keyword `keys` besides (URL → fetched document)."""
Events = Callable[[Delivery], list[Event]]
"""`events` of a provider."""
Handshake = Callable[[Delivery, Sequence[str]], Reply | None]
"""`handshake` of a provider; it has the keyword `keys` if `verify` has."""


UNSUCCESSFUL: Final = range(300, 600)
"""Whatever is no success (`Sender.retries_on`)."""
FAILURES: Final = (429, *range(500, 600))
"""Of the server, and that it is asked too much (`Sender.retries_on`)."""
SERVER_ERRORS: Final = range(500, 600)
"""Of the server only (`Sender.retries_on`)."""
NEVER: Final = ""
"""Of a sender that does not disable endpoints (`Sender.disables_after`)."""
LONG_ENOUGH: Final = timedelta(hours=12)
"""A sender that tries for less might have given up when there is room again."""
TOO_MANY, UNAVAILABLE = 429, 503


def days(number: float) -> timedelta:
    """As long as so many days."""
    return timedelta(days=number)


def hours(number: float) -> timedelta:
    """As long as so many hours."""
    return timedelta(hours=number)


def minutes(number: float) -> timedelta:
    """As long as so many minutes."""
    return timedelta(minutes=number)


def seconds(number: float) -> timedelta:
    """As long as so many seconds."""
    return timedelta(seconds=number)


Accepted = Callable[[Delivery], Reply | None]
"""What an accepted delivery is answered; None for our own answer."""


class Scheme(Protocol):
    """A way to sign. As in `Sender`, one that knows them has `tolerance`, `identity`, `proof` and `deliver`."""

    @property
    def signs_body(self) -> bool | None:
        """Whether the body is covered, None where the scheme can't tell."""
        ...

    @property
    def verify(self) -> Verify:
        """Raises: Rejected unless a delivery is authentic."""
        ...

    @property
    def sign(self) -> Sign:
        """Make the headers that prove it."""
        ...

    def check_secret(self, secret: str) -> None:
        """Raises: ValueError with what a right secret looks like."""


class Deliver(Protocol):
    """`deliver` of a provider: the whole delivery that its sender would send with `body`."""

    def __call__(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
        """Sign `body` with `secret` as of `now`. Raises: ValueError for an unusable secret."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """A sender's declarations. Two of them have no default that is safe, so every module answers them.

    scheme: how it signs; what the scheme knows (`verify`, `sign`, `tolerance`, `check_secret`, `body_is_unsigned`, the
        `identity` of Standard Webhooks) need not be said again
    id_is_signed: the event id is covered by the signature, so a new id is a new event
    retry_horizon: how long after an event the sender may still send it again, or a text that says why nobody knows;
        None says the same without a reason, which no sender has that comes with hookonce
    horizon_unknown: why it is not known, once it is loaded
    retries_on: the statuses after which the sender tries again, as far as that is known: `UNSUCCESSFUL` for all but
        2xx, () for one that never does; None where it is not documented
    disables_after: what makes the sender disable the endpoint, or leave it out for a while: refusals do, then; `NEVER`
        for one that does not, None where it is not documented
    identity: how two events are told apart whose bytes are equal otherwise, and what a retry changes
        (`told_apart_by`); a module without it loads, and fails the contract test
    body_is_unsigned: only a token vouches for the delivery, the body could be anyone's; None where `verify` is
        a scheme's, which tells; a module with a `verify` of its own says it, whatever its scheme
    signs_text: of a compressed body (Content-Encoding) the text within is signed, and not the bytes that are sent
    signed_in_parts: not the body's bytes are signed but values in it; what is not, is not in the events' data
    signs_url: our URL is a part of what is signed, or of the answer to a probe, so the receiver has to know it
    tolerance: how far a signed time may be off, None where no time is signed
    volatile: JSON paths that differ between redeliveries and are left out of the fingerprint
    id_period: the sender has no ids and sends equal bodies for different events; the receiver makes body and time
        of receipt part of the event id: an equal body that comes again within this time (within five sixths of it,
        for certain) is the same event, a later one another
    methods: with which HTTP methods it delivers events; probes come by others besides
    statuses: HTTP status for a rejection, where the sender wants another than ours
    accepted: the reply to an accepted delivery, where the sender wants one: fixed, or made of the delivery
    nonce: a signed value that each delivery has anew, of a sender that does not sign the body: what comes again with
        it is a repeat, whatever else its body says
    signed_message: what the signature covers, of a sender with unsigned ids for which that is not the body's bytes: a
        canonical form of it, or some of its values; what comes again with it under another id is a repeat, however
        its body is written and whatever else it says
    holds_repeats: why no two events of a sender with unsigned ids have equal bodies; then a known body under a new id
        waits for a person, unless the source says `repeats = "run"`
    runs_repeats: why such a sender's equal bodies may be two events, so that a repeat runs; without either it runs too
    max_body: bytes that a delivery may have at most: the sender's own limit, or little of a sender whose body is parsed
        to find the signature
    fetches: patterns of the whole URLs that may be fetched for it (`providers.kit.crypto.fetched_keys`)
    needs_secret: nothing is verified without a secret; False if options of the source say enough
    unauthenticated: the sender proves nothing, so only a secret in the URL's path tells it from others
    proof: where signatures and tokens stand besides the scheme's, which are shown to nobody: `header:name`,
        `query:name`, `$.path` of the body, `$` for all of it
    credentials: headers whose value is a secret, not a signature, in lower case; that of a `Token` is known
    check_secret: raises ValueError with what a right secret looks like
    handshake: answers a probe of the URL, None for anything else
    deliver: like `sign`, but makes the whole delivery, where the signature is in the body or the URL
    sample: makes a body with a given event id and type, for test deliveries; `one_event` and its like have one
    decode: decrypts the body of a verified delivery, or puts it where the events are read; its result is kept
    parts: cuts a delivery whose parts are signed one by one into deliveries of one part each, in the order of `events`;
        a part that does not verify is refused by itself, and the others are taken in
    mode: "live" or "test", of a sender that tells which an event is (`kit.mode`); what a source's `accept` looks at
    subject: the object that an event is about, and the version of it (`kit.about`, `kit.about_each`), of a sender for
        which two states of one object were seen
    listing: how its list of what it sent is read, of a sender that has one and is asked
    renewal: how its subscriptions are renewed, of a sender whose subscriptions end by themselves
    setup_url: the sender's page about its webhooks

    Raises: ValueError for a text where a tuple of texts belongs.
    """

    id_is_signed: bool
    retry_horizon: timedelta | str | None
    horizon_unknown: str = ""
    retries_on: Collection[int] | None = None
    disables_after: str | None = None
    scheme: Scheme | None = None
    identity: Identity | None = None
    body_is_unsigned: bool | None = None
    signs_text: bool = False
    signed_in_parts: bool = False
    signs_url: bool = False
    tolerance: timedelta | None = None
    volatile: tuple[str, ...] = ()
    id_period: timedelta | None = None
    methods: tuple[str, ...] = ("POST",)
    statuses: Mapping[Reason, int] = field(default_factory=dict)
    accepted: Reply | Accepted | None = None
    nonce: Extractor | None = None
    signed_message: Callable[[Delivery], bytes] | None = None
    holds_repeats: str = ""
    runs_repeats: str = ""
    max_body: int | None = None
    fetches: tuple[str, ...] = ()
    needs_secret: bool = True
    unauthenticated: bool = False
    proof: tuple[str, ...] = ()
    credentials: tuple[str, ...] = ()
    check_secret: Callable[[str], None] | None = None
    handshake: Handshake | None = None
    deliver: Deliver | None = None
    sample: Callable[[str, str], bytes] | None = None
    decode: Callable[[Delivery, Sequence[str]], Delivery] | None = None
    parts: Callable[[Delivery], list[Delivery]] | None = None
    mode: Extractor | None = None
    subject: About | None = None
    listing: Listing | None = None
    renewal: Renewal | None = None
    setup_url: str | None = None

    @property
    def may_be_refused_with(self) -> int | None:
        """The status that asks the sender to come later, if it is known to, for long, and to leave endpoints alone."""
        if self.disables_after != NEVER or self.retries_on is None:
            return None
        if not isinstance(self.retry_horizon, timedelta) or self.retry_horizon < LONG_ENOUGH:
            return None
        return next((status for status in (TOO_MANY, UNAVAILABLE) if status in self.retries_on), None)

    def __post_init__(self) -> None:
        for name in ("volatile", "methods", "fetches", "proof", "credentials"):
            if isinstance(getattr(self, name), str):
                msg = f"{name} is a text, expected a tuple of texts; did you forget a comma?"
                raise ValueError(msg)  # noqa: TRY004  as every declaration that can't mean anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """The result of `configure(options)`: all that a module without options has at its top level."""

    events: Events
    sender: Sender
    verify: Verify | None = None
    sign: Sign | None = None
