"""A provider as the receiver uses it: every optional thing has its default here, in one place."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from inspect import cleandoc, signature
from typing import Any, Final, Unpack

from providers import Delivery, Event, Reason, Reply
from providers.kit.events import either, one_event
from providers.kit.signing import Said, Sign
from providers.kit.token import Token

NEEDED: Final = ("verify", "events", "sign")
NAMES: Final = {
    "handshake": "handshake",
    "sample": "sample",
    "deliver": "deliver",
    "opened": "opened",
    "id_is_signed": "ID_IS_SIGNED",
    "body_is_unsigned": "BODY_IS_UNSIGNED",
    "credentials": "CREDENTIALS",
    "signed_in_parts": "SIGNED_IN_PARTS",
    "signs_url": "SIGNS_URL",
    "volatile": "VOLATILE",
    "id_period": "ID_PERIOD",
    "statuses": "STATUSES",
    "accepted": "ACCEPTED",
    "retry_horizon": "RETRY_HORIZON",
    "max_body": "MAX_BODY",
    "tolerance": "TOLERANCE",
    "fetches": "FETCHES",
    "needs_secret": "NEEDS_SECRET",
    "unauthenticated": "UNAUTHENTICATED",
    "methods": "METHODS",
    "setup_url": "SETUP",
    "check_secret": "CHECK",
}
"""What a module may say besides: field of `Provider` → name in the module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A sender's module, or what its `configure` made, ready to use.

    id_is_signed: the event id is covered by the signature, so a new id is a new event
    body_is_unsigned: only a token vouches for the delivery, the body could be anyone's
    credentials: headers whose value is a secret, not a signature, in lower case; that of a `Token` is known
    signed_in_parts: not the body's bytes are signed but values in it; what is not, is not in the events' data
    signs_url: our URL is a part of what is signed, or of the answer to a probe, so the receiver has to know it
    volatile: JSON paths that differ between redeliveries and are left out of the fingerprint
    id_period: the sender has no ids and sends equal bodies for different events; the receiver makes the time
        of receipt, rounded down to this, part of the event id
    statuses: HTTP status for a rejection, where the sender wants another than ours
    accepted: the fixed reply to an accepted delivery, where the sender wants one
    retry_horizon: how long after an event the sender may still send it again
    max_body: bytes that a delivery may have at most, of a sender whose body is parsed to find the signature
    tolerance: how far a signed time may be off, None where no time is signed
    takes_keys: `verify`, and `handshake` too, have the keyword `keys` (URL → fetched document), may raise KeyNeeded
    fetches: patterns of the whole URLs that may be fetched for it (`providers.kit.fetched`)
    needs_secret: nothing is verified without a secret; False if options of the source say enough
    unauthenticated: the sender proves nothing, so only a secret in the URL's path tells it from others
    methods: with which HTTP methods it delivers events; probes come by others besides
    setup_url: the sender's page about its webhooks; summary: one line on what is signed
    check_secret: raises ValueError with what a right secret looks like
    sample: makes a body with a given event id and type, for test deliveries
    deliver: like `sign`, but makes the whole delivery, where the signature is in the body or the URL
    opened: decrypts the body of a verified delivery; events are read of what it gives, and that is kept
    """

    name: str
    verify: Callable[..., None]
    events: Callable[[Delivery], list[Event]]
    sign: Sign
    handshake: Callable[..., Reply | None] | None = None
    sample: Callable[[str, str], bytes] | None = None
    deliver: Callable[..., Delivery] | None = None
    opened: Callable[[Delivery, Sequence[str]], Delivery] | None = None
    id_is_signed: bool = True
    body_is_unsigned: bool = False
    credentials: tuple[str, ...] = ()
    signed_in_parts: bool = False
    signs_url: bool = False
    volatile: tuple[str, ...] = ()
    id_period: timedelta | None = None
    statuses: Mapping[Reason, int] = field(default_factory=dict)
    accepted: Reply | None = None
    retry_horizon: timedelta | None = None
    max_body: int | None = None
    tolerance: timedelta | None = None
    takes_keys: bool = False
    fetches: tuple[str, ...] = ()
    needs_secret: bool = True
    unauthenticated: bool = False
    methods: tuple[str, ...] = ("POST",)
    setup_url: str | None = None
    summary: str = ""
    check_secret: Callable[[str], None] | None = None

    def delivery(self, body: bytes, secret: str, now: datetime, **said: Unpack[Said]) -> Delivery:
        """What the sender would send with `body`. Raises: ValueError for an unusable secret."""
        if self.deliver:
            return self.deliver(body, secret, now, **said)
        headers = self.sign(body, secret, now, **said)
        return Delivery(said.get("method", "POST"), said.get("url", ""), headers, body)


def provider(name: str, source: object, origin: str, doc: str | None = None) -> Provider:
    """Wrap a module or a configured object; `origin` is its file, `doc` the module's docstring.

    Raises: ValueError naming the file and what it lacks.
    """
    missing = [needed for needed in NEEDED if not callable(getattr(source, needed, None))]
    if missing:
        msg = f"provider '{name}' ({origin}) lacks {', '.join(missing)}; a provider needs {', '.join(NEEDED)}"
        raise ValueError(msg)
    verify = source.verify  # type: ignore[attr-defined]
    events = source.events  # type: ignore[attr-defined]
    said: dict[str, Any] = {
        key: getattr(source, there)
        for key, there in NAMES.items()
        if getattr(source, there, None) is not None
    }
    if isinstance(events, one_event | either):
        said.setdefault("sample", events.sample)
    if isinstance(scheme := getattr(verify, "__self__", None), Token):
        said.setdefault("credentials", (scheme.header,))
    return Provider(
        name=name,
        verify=verify,
        events=events,
        sign=source.sign,  # type: ignore[attr-defined]
        takes_keys="keys" in signature(verify).parameters,
        summary=summary(doc if doc is not None else getattr(source, "__doc__", None)),
        **said,
    )


def summary(doc: str | None) -> str:
    """The first line of a docstring, without its full stop."""
    return cleandoc(doc).split("\n", 1)[0].rstrip(".") if doc else ""
