"""A provider as the receiver uses it: a sender's declarations and its functions, checked when it is loaded."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from difflib import get_close_matches
from hashlib import sha256
from inspect import cleandoc, isfunction, signature
from re import escape
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, Unpack

from hookonce.providers import Delivery, Event, Reply
from hookonce.providers.kit.events.declare import one_event, one_of_two
from hookonce.providers.kit.events.fields import EventView, text_or_none
from hookonce.providers.kit.reading.bodies import any_body_or_none
from hookonce.providers.kit.schemes.shared_token import Token
from hookonce.providers.kit.sender import Events, Sender
from hookonce.providers.kit.signing.verdict import Sign, SignOptions, delivering, signer

if TYPE_CHECKING:  # the library's half that takes long to import
    from hookonce.providers.kit.crypto.public_keys import Algorithm

MAX_BODY: Final = 1 << 20
"""Bytes of a body that holds what proves its sender: it is parsed before it is known to be genuine."""
NEEDED: Final = ("verify", "events", "sign")
OPTIONAL: Final = ("handshake", "deliver", "sample", "decode", "check_secret")
"""Functions that a module may have besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider(Sender):
    """A sender's module, or what its `configure` made, ready to use; what it declares is said at `Sender`.

    key_algorithm: what the sender signs with, where a public key verifies it and the scheme tells
    batch: makes the body of a batch out of its one element, of a sender whose bodies are lists of events
    takes_keys: `verify`, and `handshake` too, have the keyword `keys` (URL → fetched document), may raise KeyNeeded
    summary: one line on what is signed
    """

    name: str
    verify: Callable[..., None]
    events: Events
    sign: Sign
    retry_horizon: timedelta | None
    body_is_unsigned: bool = False
    handshake: Callable[..., Reply | None] | None = None
    key_algorithm: "Algorithm | None" = None
    takes_keys: bool = False
    batch: Callable[[bytes], bytes] | None = None
    summary: str = ""

    @property
    def verifies_text(self) -> bool:
        """Whether a compressed body is inflated before it is verified: its text is signed, or read for the proof."""
        signs_fields = "{params}" in str(getattr(self.scheme, "signed", ""))
        reads = self.body_is_unsigned or self.signed_in_parts or getattr(self.scheme, "in_body", False)
        return self.signs_text or signs_fields or bool(reads)

    def delivery(self, body: bytes, secret: str, now: datetime, **options: Unpack[SignOptions]) -> Delivery:
        """Return what the sender would send with `body`. Raises: ValueError for an unusable secret."""
        options = {"method": self.methods[0], **options}
        if self.deliver:
            return self.deliver(body, secret, now, **options)
        headers = self.sign(body, secret, now, **options)
        return Delivery(options["method"], options.get("url", ""), headers, body)

    def mode_of(self, delivery: Delivery, event: Event) -> str | None:
        """Return whether an event is of its sender's `live` mode or a `test`; None where the sender does not tell."""
        if self.mode is None:
            return None
        whole = event.data if event.raw is None else any_body_or_none(delivery)
        return text_or_none(self.mode, EventView(delivery, event.data, whole))

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
        signed = sha256(self.signed_message(delivery)).digest()
        return sha256(b"signed " + signed + (event.raw or b"")).digest()


def provider(name: str, source: object, origin: str, module: object = None) -> Provider:
    """Wrap a module, or what the `configure` of `module` made; `origin` is its file.

    Raises: ValueError naming the file and everything that is wrong with it.
    """
    module = source if module is None else module
    made = _derived(source, module)
    mistakes = [*_missing(made), *_misspelt(module)] or [*_contradictions(made)]
    if mistakes:
        raise ValueError(f"provider '{name}' ({origin}) {'; it '.join(mistakes)}")
    return Provider(
        name=name,
        takes_keys="keys" in signature(made["verify"]).parameters,
        batch=getattr(made["events"], "batch", None),
        summary=summary(getattr(module, "__doc__", None)),
        **made,
    )


def _derived(source: object, module: object) -> dict[str, Any]:
    """Return what is declared, and what follows from it: of the scheme, and of the functions that there are."""
    made: dict[str, Any] = {each: getattr(source, each, None) for each in NEEDED}
    sender = getattr(source, "sender", None)
    if not isinstance(sender, Sender):
        return made
    made |= {each.name: getattr(sender, each.name) for each in fields(Sender)}
    if isinstance(sender.retry_horizon, str):
        made |= {"retry_horizon": None, "horizon_unknown": sender.retry_horizon}
    for each in OPTIONAL:
        made[each] = made[each] or getattr(source, each, None) or getattr(module, each, None)
    if sender.scheme:
        _add_what_the_scheme_knows(made, sender.scheme)
    scheme = made["scheme"] = sender.scheme or getattr(made["verify"], "__self__", None)
    signs_body = getattr(_verifying(made), "signs_body", None)
    if made["body_is_unsigned"] is None and signs_body is not None:
        made["body_is_unsigned"] = not signs_body
    if made["sample"] is None and isinstance(made["events"], one_event | one_of_two):
        made["sample"] = made["events"].sample
    if made["tolerance"] is None:
        made["tolerance"] = getattr(scheme, "tolerance", None)
    if not sender.credentials and isinstance(scheme, Token) and scheme.header:
        made["credentials"] = (scheme.header,)
    tokens = (f"header:{name}" for name in made["credentials"])
    made["proof"] = (*sender.proof, *getattr(scheme, "proof", ()), *tokens)
    return made | {"key_algorithm": getattr(scheme, "key_algorithm", None)}


def _add_what_the_scheme_knows(made: dict[str, Any], scheme: Any) -> None:  # noqa: ANN401  its optional parts too
    """Fill in what the module has not said otherwise."""
    names = ("verify", "sign", "check_secret", "tolerance", "identity")
    known: dict[str, Any] = {each: getattr(scheme, each, None) for each in names}
    if jwks := getattr(scheme, "jwks", ""):
        known["verify"] = getattr(scheme, "verify_by_set", scheme.verify)
        made |= {"fetches": made["fetches"] or (escape(jwks),), "needs_secret": False}
    if known["sign"]:
        known["sign"] = signer(known["sign"])
    if not getattr(scheme, "header", True):  # what proves it is in the URL or the body
        known["deliver"] = delivering(scheme.deliver, made["sign"] or known["sign"])
    known["max_body"] = MAX_BODY if getattr(scheme, "in_body", False) else None
    made["unauthenticated"] |= getattr(scheme, "path", False)
    made.update({each: value for each, value in known.items() if made[each] is None})


def _missing(made: Mapping[str, Any]) -> list[str]:
    missing = [each for each in NEEDED if not callable(made[each])]
    missing += [] if "sample" in made else ["sender"]
    shape = (
        "a provider needs events and sender = Sender(scheme=…, …), or verify and sign in place of a scheme"
    )
    return [f"lacks {', '.join(missing)}; {shape}"] if missing else []


def _misspelt(module: object) -> Iterator[str]:
    """Yield functions that would silently be left out: called almost as they should be."""
    known = (*NEEDED, *OPTIONAL, "configure")
    for key, value in vars(module).items() if isinstance(module, ModuleType) else ():
        if isfunction(value) and value.__module__ == module.__name__ and key[0] != "_" and key not in known:  # type: ignore[attr-defined]
            for each in get_close_matches(key, known, n=1, cutoff=0.85):
                yield f"has {key}(); did you mean {each}? If not, write _{key}"


def _verifying(made: Mapping[str, Any]) -> object:
    """Return the scheme, if it verifies; None where the module has a `verify` of its own, of which nothing is known."""
    scheme = made["scheme"]
    own = (getattr(scheme, each, None) for each in ("verify", "verify_by_set"))
    return scheme if made["verify"] in own else None


def _contradictions(made: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the scheme knows better."""
    scheme = _verifying(made)
    signs_body, tolerance = getattr(scheme, "signs_body", None), getattr(scheme, "tolerance", None)
    if (is_unsigned := made["body_is_unsigned"]) is None:
        yield "does not tell whether the body is signed; write Sender(body_is_unsigned=False, …), or True"
    elif is_unsigned is signs_body:
        yield f"says body_is_unsigned={signs_body}, and {type(scheme).__name__} shows that this is not so"
    if made["holds_repeats"] and (made["id_is_signed"] or is_unsigned):
        yield "has holds_repeats, which is for senders that sign the body and not the id; leave it out"
    if made["holds_repeats"] and made["runs_repeats"]:
        yield "has holds_repeats and runs_repeats; leave one out"
    if tolerance is not None and made["tolerance"] != tolerance:
        yield f"allows a signed time to be {tolerance} off; write Sender(scheme=…, …), which knows it"


def summary(doc: str | None) -> str:
    """Return the first line of a docstring, without its full stop."""
    return cleandoc(doc).split("\n", 1)[0].rstrip(".") if doc else ""
