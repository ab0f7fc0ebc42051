"""Tries what usually goes wrong with a delivery, and says which of it makes the signature right.

A change to the body on its way, a secret that was pasted with something around it, the URL of another source, a
clock: each is undone and verified again, so what is named is not guessed.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.receiver.intake.explain.checks import Case, Check, age, checks, secret_number

_SIGNATURE: Final = re.compile(r"sign|hmac|digest")
_ZONE_TOLERANCE: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdict (`reason` None: genuine), what was checked, the likely cause and what to do about it."""

    reason: Reason | None
    detail: str
    slot: int | None
    checks: list[Check]
    cause: str
    advice: str


def explain(case: Case) -> Explanation:
    """Explain a delivery."""
    looked = checks(case)
    if not case.is_whole:
        return Explanation(None, "only the beginning of the body was kept", None, looked, *_partial(looked))
    refusal = case.refusal()
    if refusal is None:
        return _genuine(case, looked)
    cause, advice = _CAUSES.get(refusal.reason, _other)(case, refusal)
    return Explanation(refusal.reason, refusal.detail, secret_number(case), looked, cause, advice)


def _genuine(case: Case, looked: list[Check]) -> Explanation:
    """Explain a genuine delivery; one that its adapter can't read is taken in as an event that is unreadable."""
    slot = secret_number(case)
    try:
        read = case.verifier.authenticate(case.source, case.delivery, case.now)
    except Rejected as error:
        return Explanation(error.reason, error.detail, slot, looked, *_other(case, error))
    unreadable = next((event.unreadable for event in read.events if event.unreadable), None)
    if unreadable is None:
        return Explanation(None, "genuine", slot, looked, "", "")
    cause = f"the provider module can't read it: {unreadable}"
    return Explanation(
        None, "genuine, and kept as one event of type unreadable", slot, looked, cause, _MODULE
    )


_MODULE: Final = "correct the provider module, then replay the event"


def _partial(looked: list[Check]) -> tuple[str, str]:
    wrong = next((check for check in looked if check.is_right is False), None)
    if wrong is None:
        return "", "capture a whole delivery with `hookonce capture` and explain that"
    return f"{wrong.what}: expected {wrong.expected}, found {wrong.found}", ""


def _forged(case: Case, _refusal: Rejected) -> tuple[str, str]:
    for cause, advice, delivery, secrets in _trials(case):
        if case.signs(delivery, secrets):
            return cause, advice
    meant = _other_source(case)
    if meant:
        return meant
    if any(check.what == "length of the body" and check.is_right is False for check in checks(case)):
        return "the body was changed on its way: its length is not what the sender said", _RAW
    if case.provider.key_algorithm:
        return (
            "the sender signs with another key, or the body was changed in a way that leaves no trace",
            "compare the public key with the one that the sender shows for this very endpoint and mode (test or live)",
        )
    return (
        "the sender signs with another secret, or the body was changed in a way that leaves no trace",
        "compare the secret with the one on the sender's page, for this very endpoint and mode (test or live)",
    )


_RAW: Final = "let whatever stands before the receiver pass the body on byte for byte"
_PASTED: Final = "set the secret again, exactly as the sender's page shows it"
_ADDRESS: Final = (
    "set public_url to what the sender posts to, scheme and host, without a slash at its end; or url of the source to "
    "the whole of it, where a proxy rewrites the path"
)

_Trial = tuple[str, str, Delivery, tuple[str, ...]]


def _trials(case: Case) -> Iterator[_Trial]:
    own = tuple(case.secrets)
    for words, body in _bodies(case.delivery.body):
        yield f"the body was changed on its way: {words}", _RAW, replace(case.delivery, body=body), own
    for secret in own:
        for words, variant in _secrets(secret):
            yield f"the configured secret is not the sender's: {words}", _PASTED, case.delivery, (variant,)
    if case.provider.signs_url:
        for words, url in _urls(case.delivery.url):
            yield f"the sender signed another URL: {words}", _ADDRESS, replace(case.delivery, url=url), own


def _bodies(body: bytes) -> Iterator[tuple[str, bytes]]:
    """Undo what proxies, editors and frameworks do to a body."""
    stripped = body.rstrip(b"\r\n")
    yield "a line end was added at its end", stripped
    yield "the line end at its end was cut off", stripped + b"\n"
    yield "the line end at its end was cut off", stripped + b"\r\n"
    yield "line ends became LF", body.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    yield "line ends became CRLF", body.replace(b"\r\n", b"\n")
    yield "a byte order mark was added", body.removeprefix(b"\xef\xbb\xbf")
    with suppress(ValueError, RecursionError):
        document = json.loads(body)
        for style in _STYLES:
            text = json.dumps(document, **style)
            for spelled in (text, text.replace("/", "\\/")):
                with suppress(UnicodeEncodeError):
                    yield "its JSON was parsed and written again", spelled.encode()
    with suppress(UnicodeError):
        yield "it was read as latin-1 and written as UTF-8", body.decode().encode("latin-1")


_STYLES: Final[tuple[dict[str, Any], ...]] = tuple(
    {"separators": separators, "ensure_ascii": ascii_, "sort_keys": sorted_, "indent": indent}
    for separators, indent in (((",", ":"), None), ((", ", ": "), None), ((",", ": "), 2), ((",", ": "), 4))
    for ascii_ in (False, True)
    for sorted_ in (False, True)
)


def _secrets(secret: str) -> Iterator[tuple[str, str]]:
    """Undo what happens to secrets between the sender's page and the configuration."""
    yield "it has quotes around it", secret.strip("'\"")
    yield "it lacks its prefix whsec_", f"whsec_{secret}"
    yield "it has a prefix that is not part of it", secret.rpartition("_")[2]
    yield "it has a line end or a space that belongs to it", f"{secret}\n"
    yield "it is in capitals", secret.lower()
    yield "it is a variable's name and value", secret.partition("=")[2]


def _urls(url: str) -> Iterator[tuple[str, str]]:
    """Undo what proxies do to a URL."""
    scheme, _, rest = url.partition("://")
    yield (
        "http, not https" if scheme == "https" else "https, not http",
        (f"{'http' if scheme == 'https' else 'https'}://{rest}"),
    )
    path, mark, query = url.partition("?")
    yield "with a slash at its end", f"{path}/{mark}{query}"
    yield "without the slash at its end", path.rstrip("/") + mark + query
    yield "without its query", path


def _other_source(case: Case) -> tuple[str, str] | None:
    """Find another source for which this very delivery is genuine."""
    for name, other in case.others.items():
        refusal = case.refusal_of(other, case.delivery)
        proves = other.secrets and not other.unauthenticated and not other.provider.unauthenticated
        if proves and (refusal is None or refusal.reason is Reason.STALE):
            return (
                f"it is genuine for source '{name}'",
                f"have the sender post to /hooks/{name}, or swap the secrets",
            )
    return None


def _stale(case: Case, _refusal: Rejected) -> tuple[str, str]:
    old = age(case)
    if old is None:
        return "the signed time is too far from ours", "compare this machine's clock with a time server"
    hours = round(old / timedelta(hours=1))
    if hours and abs(old - timedelta(hours=hours)) < _ZONE_TOLERANCE and abs(hours) <= 14:  # noqa: PLR2004  no zone is further
        return (
            f"the signed time is {abs(hours)} h {'behind' if hours > 0 else 'ahead'}: a zone, a delay, or a replay",
            "if it was captured earlier, name that time with --at; else compare both clocks, in UTC",
        )
    if old < timedelta(0):
        return (
            "our clock is behind, or the sender's is ahead",
            "compare this machine's clock with a time server",
        )
    return (
        "it is old: captured earlier, delivered late, or sent again by somebody who kept it",
        "if it was captured earlier, name that time with --at; `hookonce doctor` looks at this machine's clock",
    )


def _missing(case: Case, refusal: Rejected) -> tuple[str, str]:
    meant = _other_source(case)
    if meant:
        return meant
    near = sorted(name for name in case.delivery.headers if _SIGNATURE.search(name))
    if near:
        return f"a header that is needed is missing; like a signature look: {', '.join(near)}", _SENDER
    return f"{refusal.detail}: the sender does not sign, or something on the way drops headers", _SENDER


_SENDER: Final = (
    "see that the endpoint has a signing secret at the sender, and that no proxy drops its headers"
)


def _other(_case: Case, refusal: Rejected) -> tuple[str, str]:
    return refusal.detail, ""


def _no_secret(_case: Case, _refusal: Rejected) -> tuple[str, str]:
    return (
        "no secret is configured here",
        "set it as for `hookonce serve`; `hookonce doctor` names the variable",
    )


_CAUSES: Final = {
    Reason.BAD_SIGNATURE: _forged,
    Reason.STALE: _stale,
    Reason.MISSING_HEADER: _missing,
    Reason.BAD_HEADER: _missing,
    Reason.NO_SECRET: _no_secret,
}
