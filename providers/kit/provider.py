"""A provider as the receiver uses it: a sender's declarations and its functions, checked when it is loaded."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import datetime
from difflib import get_close_matches
from hashlib import sha256
from inspect import cleandoc, isfunction, signature
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Unpack

from hookonce.providers import Delivery, Event, Rejected, Reply
from hookonce.providers.kit.events.declare import one_event, one_of_two
from hookonce.providers.kit.events.fields import EventView, text_or_none
from hookonce.providers.kit.schemes.shared_token import Token
from hookonce.providers.kit.sender import Events, Sender
from hookonce.providers.kit.signing.verdict import Sign, SignOptions

if TYPE_CHECKING:
    from hookonce.providers.kit.crypto.public_keys import (
        Algorithm,
    )  # the library's half that takes long to import

NEEDED: Final = ("verify", "events", "sign")
OPTIONAL: Final = ("handshake", "deliver", "sample", "decode", "check_secret")
"""Functions that a module may have besides; those that it has are named in its `Sender`."""
FORMER: Final = {
    "ID_IS_SIGNED": "id_is_signed",
    "BODY_IS_UNSIGNED": "body_is_unsigned",
    "CREDENTIALS": "credentials",
    "SIGNED_IN_PARTS": "signed_in_parts",
    "SIGNS_URL": "signs_url",
    "VOLATILE": "volatile",
    "ID_PERIOD": "id_period",
    "STATUSES": "statuses",
    "ACCEPTED": "accepted",
    "RETRY_HORIZON": "retry_horizon",
    "MAX_BODY": "max_body",
    "TOLERANCE": "tolerance",
    "FETCHES": "fetches",
    "NEEDS_SECRET": "needs_secret",
    "UNAUTHENTICATED": "unauthenticated",
    "METHODS": "methods",
    "SETUP": "setup_url",
    "CHECK": "check_secret",
    "opened": "decode",
}
"""Names that were declarations by themselves once and that nothing reads any more: → field of `Sender`."""
_SHAPE: Final = "sender = Sender(id_is_signed=…, retry_horizon=…, …)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider(Sender):
    """A sender's module, or what its `configure` made, ready to use; what it declares is said at `Sender`.

    key_algorithm: what the sender signs with, where a public key verifies it and the scheme tells
    takes_keys: `verify`, and `handshake` too, have the keyword `keys` (URL → fetched document), may raise KeyNeeded
    summary: one line on what is signed
    """

    name: str
    verify: Callable[..., None]
    events: Events
    sign: Sign
    body_is_unsigned: bool = False
    handshake: Callable[..., Reply | None] | None = None
    key_algorithm: "Algorithm | None" = None
    takes_keys: bool = False
    summary: str = ""

    def delivery(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
        """Return what the sender would send with `body`. Raises: ValueError for an unusable secret."""
        if self.deliver:
            return self.deliver(body, secret, now, **options)
        headers = self.sign(body, secret, now, **options)
        return Delivery(options.get("method", "POST"), options.get("url", ""), headers, body)

    def nonce_mark(self, delivery: Delivery, event: Event) -> bytes | None:
        """Return the SHA-256 of the signed nonce; None of a sender, or a delivery, that has none."""
        if self.nonce is None:
            return None
        nonce = text_or_none(self.nonce, EventView(delivery, event.data, event.data))
        return None if nonce is None else sha256(b"nonce " + nonce.encode("utf-8", "surrogatepass")).digest()

    def repeat_mark(self, delivery: Delivery, event: Event) -> bytes | None:
        """Return the SHA-256 of what was signed of a verified `delivery`; None where the body's own is as good.

        So it is where the id is signed, and where the body's bytes are. An element's own bytes go with it, or all of a
        batch would be repeats of the first.
        """
        if self.signed_message is None or self.id_is_signed:
            return None
        try:
            signed = self.signed_message(delivery)
        except Rejected:  # it was stored before this release, and has not the form of today
            return None
        return sha256(b"signed " + sha256(signed).digest() + (event.raw or b"")).digest()


def provider(name: str, source: object, origin: str, module: object = None) -> Provider:
    """Wrap a module, or what the `configure` of `module` made; `origin` is its file.

    Raises: ValueError naming the file and everything that is wrong with it.
    """
    module = source if module is None else module
    sender = getattr(source, "sender", None)
    mistakes = _former(module) or [*_missing(source, sender), *_undeclared(module, sender)]
    if not mistakes and isinstance(sender, Sender):
        mistakes = _contradictions(source.verify, sender)  # type: ignore[attr-defined]
    if mistakes or not isinstance(sender, Sender):
        msg = f"provider '{name}' ({origin}) {'; it '.join(mistakes)}"
        raise ValueError(msg)
    verify = source.verify  # type: ignore[attr-defined]
    events = source.events  # type: ignore[attr-defined]
    declared: dict[str, Any] = {each.name: getattr(sender, each.name) for each in fields(Sender)}
    if sender.body_is_unsigned is None:
        declared["body_is_unsigned"] = not _scheme_of(verify).signs_body
    if sender.sample is None and isinstance(events, one_event | one_of_two):
        declared["sample"] = events.sample
    if not sender.credentials and isinstance(scheme := _scheme_of(verify), Token):
        declared["credentials"] = (scheme.header,)
    return Provider(
        name=name,
        verify=verify,
        events=events,
        sign=source.sign,  # type: ignore[attr-defined]
        key_algorithm=getattr(_scheme_of(verify), "key_algorithm", None),
        takes_keys="keys" in signature(verify).parameters,
        summary=summary(getattr(module, "__doc__", None)),
        **declared,
    )


def _former(module: object) -> list[str]:
    """Return what was a declaration once and is now read by nobody."""
    found = [each for each in FORMER if hasattr(module, each)]
    if not found:
        return []
    instead = ", ".join(f"{FORMER[each]}=…" for each in found)
    return [f"has {', '.join(found)}, which nothing reads; write sender = Sender({instead}) instead"]


def _missing(source: object, sender: object) -> list[str]:
    missing = [needed for needed in NEEDED if not callable(getattr(source, needed, None))]
    if not isinstance(sender, Sender):
        missing.append("sender")
    return (
        [f"lacks {', '.join(missing)}; a provider needs verify, events, sign and {_SHAPE}"] if missing else []
    )


def _undeclared(module: object, sender: object) -> list[str]:
    """Functions that would silently be left out: not named in the `Sender`, or called almost as they should be."""
    if not isinstance(sender, Sender):
        return []
    there = [each for each in OPTIONAL if callable(getattr(module, each, None))]
    forgotten = [each for each in there if getattr(sender, each) is None]
    mistakes = [f"has {each}() and does not declare it; write Sender({each}={each}, …)" for each in forgotten]
    known = (*NEEDED, *OPTIONAL, "configure")
    for key in _own_functions(module):
        close = get_close_matches(key, known, n=1, cutoff=0.85) if key not in known else []
        mistakes += [f"has {key}(); did you mean {each}? If not, write _{key}" for each in close]
    return mistakes


def _own_functions(module: object) -> list[str]:
    """Return the functions that the module itself defines, for others to see."""
    if not isinstance(module, ModuleType):
        return []
    functions = [(key, value) for key, value in vars(module).items() if isfunction(value)]
    return [key for key, value in functions if value.__module__ == module.__name__ and key[0] != "_"]


def _scheme_of(verify: object) -> Any:  # noqa: ANN401  a scheme of ours, of somebody else's, or None
    """Return the scheme whose `verify` it is."""
    return getattr(verify, "__self__", None)


def _contradictions(verify: object, sender: Sender) -> list[str]:
    """Return what the scheme knows better."""
    scheme = _scheme_of(verify)
    signs_body, tolerance = getattr(scheme, "signs_body", None), getattr(scheme, "tolerance", None)
    mistakes = []
    if signs_body is None and sender.body_is_unsigned is None:
        mistakes.append(
            "does not tell whether the body is signed; write Sender(body_is_unsigned=False, …), or True"
        )
    if signs_body is not None and sender.body_is_unsigned is signs_body:
        mistakes.append(
            f"says body_is_unsigned={signs_body}, and {type(scheme).__name__} shows that this is not so"
        )
    if tolerance is not None and sender.tolerance != tolerance:
        mistakes.append(
            f"allows a signed time to be {tolerance} off; write Sender(tolerance=scheme.tolerance, …)"
        )
    return mistakes


def summary(doc: str | None) -> str:
    """Return the first line of a docstring, without its full stop."""
    return cleandoc(doc).split("\n", 1)[0].rstrip(".") if doc else ""
