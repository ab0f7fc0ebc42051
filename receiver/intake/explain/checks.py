"""Explains why a delivery is refused, or that it is not: each check, what it expects, and what was found.

Forms are told, values are not: never a secret, nor a signature that would be right. What a genuine delivery looks
like is asked of the provider, which signs the same body with a secret made up for this.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final

from hookonce.providers import Delivery, KeyNeeded, Reason, Rejected
from hookonce.providers.kit.crypto.public_keys import Algorithm, new_key
from hookonce.providers.kit.crypto.secret_keys import wrong_secret
from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.signing.timestamps import TOLERANCE
from hookonce.receiver.durations import format_duration
from hookonce.receiver.intake.explain.header_shapes import form, time_in, words
from hookonce.receiver.intake.verification import Verifier
from hookonce.receiver.ledger.rows import Ours, ResponseModel
from hookonce.receiver.outbound.key_fetcher import KeyUnavailable
from hookonce.receiver.source import Source

_ID: Final = "evt_hookonce_explains"
_TYPE: Final = "hookonce.explains"
_IGNORED_HEADERS: Final = frozenset({"content-type", "content-length", "user-agent"})
_LARGEST: Final = 1 << 30
_MADE_UP_SECRET: Final = "a secret that is nobody's, of a fair length"  # noqa: S105  nobody's


@dataclass(frozen=True, slots=True)
class Case:
    """A delivery to a source and what it is to be checked against, as of `now`, as the receiver would verify it.

    `others`: other sources by name, which the delivery may be meant for.
    `is_whole`: False where only the beginning of the body was kept, so that no signature can be checked.
    """

    source: Source
    delivery: Delivery
    now: datetime
    others: Mapping[str, Source] = field(default_factory=dict, repr=False)
    is_whole: bool = True
    verifier: Verifier = field(default_factory=lambda: Verifier(_LARGEST))

    @property
    def provider(self) -> Provider:
        """The source's."""
        return self.source.provider

    @property
    def secrets(self) -> Sequence[str]:
        """The source's."""
        return self.source.secrets

    def refusal(
        self, delivery: Delivery | None = None, secrets: Sequence[str] | None = None
    ) -> Rejected | None:
        """Verify, this delivery unless another is given; None where it is genuine."""
        source = self.source if secrets is None else replace(self.source, secrets=tuple(secrets))
        return self.refusal_of(source, delivery or self.delivery)

    def refusal_of(self, source: Source, delivery: Delivery) -> Rejected | None:
        """Verify a delivery to a source; None where it is genuine."""
        try:
            self.verifier.verify(source, delivery, self.now)
        except Rejected as error:
            return error
        except (KeyNeeded, KeyUnavailable):
            return Rejected(
                Reason.BAD_SIGNATURE, "a key of the sender's would have to be fetched, and can't be had"
            )
        return None

    def signs(self, delivery: Delivery | None = None, secrets: Sequence[str] | None = None) -> bool:
        """Whether the signature is right, however old it is: providers look at the time last."""
        refusal = self.refusal(delivery, secrets)
        return refusal is None or refusal.reason is Reason.STALE


def case_of(
    source: Source, delivery: Delivery, now: datetime, sources: Mapping[str, Source], *, is_whole: bool = True
) -> Case:
    """Return a delivery to a source as a case, with the other `sources` that it may be meant for."""
    others = {
        name: each for name, each in sources.items() if name != source.name and not each.provider.takes_keys
    }
    return Case(source, delivery, now, others, is_whole)


class Check(ResponseModel):
    """One thing that was looked at; `is_right` is null where it can't be known."""

    what: Ours
    expected: Ours
    found: str
    is_right: bool | None


def checks(case: Case) -> list[Check]:
    """Look at everything a verification looks at: secrets, headers, time, body, signature."""
    model = _model(case)
    found = [_secrets(case), *_headers(case, model), *_time(case, model), *_body(case)]
    if case.is_whole:
        found.append(_signature(case))
    return found


def age(case: Case) -> timedelta | None:
    """Return how old the signed time is, negative if it is ahead; None where there is none, or none was found."""
    model = _model(case)
    timed = [name for name, value in (model.headers if model else {}).items() if time_in(value)]
    times = [time_in(case.delivery.headers[name]) for name in timed if name in case.delivery.headers]
    signed_at = next((time for time in times if time), None)
    return None if signed_at is None or case.provider.tolerance is None else case.now - signed_at


def _model(case: Case) -> Delivery | None:
    """Return the delivery that the sender would make of this body, signed with a secret made up here."""
    if case.provider.key_algorithm:
        secret = _own_key(case.provider.key_algorithm)
    else:
        secret = wrong_secret(case.secrets[0]) if case.secrets else _MADE_UP_SECRET
    options = {"event_id": _ID, "type": _TYPE, "url": case.delivery.url, "method": case.delivery.method}
    with suppress(ValueError, Rejected):
        return case.provider.delivery(case.delivery.body, secret, case.now, **options)  # type: ignore[arg-type]
    return None


@cache
def _own_key(algorithm: Algorithm) -> str:
    """Return a private key of our own: the sender's is known to nobody, and each has signatures of the same form."""
    return new_key(algorithm)


def _secrets(case: Case) -> Check:
    count = len(case.secrets)
    is_right = bool(count) or not case.provider.needs_secret
    if case.provider.key_algorithm:
        expected = (
            "at least one public key"
            if case.provider.needs_secret
            else "a public key, or none: a set is fetched"
        )
        return Check(what="keys", expected=expected, found=f"{count} configured", is_right=is_right)
    return Check(what="secrets", expected="at least one", found=f"{count} configured", is_right=is_right)


def _headers(case: Case, model: Delivery | None) -> list[Check]:
    """Compare each header that the sender's signature uses; of an id's or a type's only that it is there."""
    made = model.headers if model else {}
    return [_header(case, name, made[name]) for name in made if name not in _IGNORED_HEADERS]


def _header(case: Case, name: str, made: str) -> Check:
    value = case.delivery.headers.get(name)
    is_free = any(word in made for word in (_ID, _TYPE, _TYPE.partition(".")[0]))
    is_secret = bool(case.secrets) and wrong_secret(case.secrets[0]) in made
    expected = "any" if is_free else "the secret" if is_secret else form(made, words(made))
    if value is None:
        return Check(what=f"header {name}", expected=expected, found="missing", is_right=False)
    if is_free or is_secret:
        return Check(
            what=f"header {name}", expected=expected, found="there", is_right=True if is_free else None
        )
    found = form(value, words(made))
    is_right = found == expected or _parts(expected) <= _parts(found)
    return Check(what=f"header {name}", expected=expected, found=found, is_right=is_right)


def _parts(shape: str) -> set[str]:
    """Return the items of a header that is a list: a sender may send others besides."""
    return {part.strip() for part in re.split("[,;]", shape)}


def _time(case: Case, model: Delivery | None) -> list[Check]:
    del model
    tolerance, old = case.source.tolerance or case.provider.tolerance, age(case)
    if tolerance is None or old is None:
        return []
    expected = f"within {format_duration(tolerance)} of {case.now.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
    found = f"{format_duration(abs(old))} {'old' if old > timedelta(0) else 'ahead'}"
    return [
        Check(
            what="signed time",
            expected=expected,
            found=found,
            is_right=-max(tolerance, TOLERANCE) <= old <= tolerance,
        )
    ]


def _body(case: Case) -> list[Check]:
    body, headers = case.delivery.body, case.delivery.headers
    found = []
    length = headers.get("content-length", "")
    if length.isdecimal() and case.is_whole:
        length_check = Check(
            what="length of the body",
            expected=f"{length} bytes (content-length)",
            found=f"{len(body)} bytes",
            is_right=int(length) == len(body),
        )
        found.append(length_check)
    encoding = headers.get("content-encoding", "identity")
    if encoding != "identity":
        found.append(
            Check(
                what="content-encoding",
                expected="none",
                found=form(encoding, words("gzip br deflate")),
                is_right=False,
            )
        )
    if case.is_whole and ("json" in headers.get("content-type", "") or body.lstrip()[:1] in {b"{", b"["}):
        try:
            json.loads(body.decode())
        except (ValueError, RecursionError) as error:
            found.append(
                Check(what="body", expected="JSON", found=f"none: {type(error).__name__}", is_right=False)
            )
        else:
            found.append(Check(what="body", expected="JSON", found=f"JSON, {len(body)} bytes", is_right=True))
    return found


def _signature(case: Case) -> Check:
    slot = secret_number(case)
    if slot:
        return Check(
            what="signature",
            expected="right under one of the secrets",
            found=f"right under secret {slot}",
            is_right=True,
        )
    if case.signs():
        return Check(what="signature", expected="right", found="right", is_right=True)
    return Check(
        what="signature", expected="right under one of the secrets", found="right under none", is_right=False
    )


def secret_number(case: Case) -> int | None:
    """Return which secret, from 1, signed the delivery; None if no single one did."""
    return next((n for n, secret in enumerate(case.secrets, 1) if case.signs(secrets=(secret,))), None)
