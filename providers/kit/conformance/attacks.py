"""Attacks that others may try, and how a provider must answer."""

import json
import re
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from itertools import chain

from hookonce.providers import Reason, Rejected
from hookonce.providers.kit.conformance.cases import Case, expect, refusal
from hookonce.providers.kit.signing.timestamps import TOLERANCE

_ZERO = chr(0)
"""HMAC fills keys up with zeros: what this signs is what an attacker sends who counts on an empty key."""
_YEARS = timedelta(days=3650)
_MARGIN = timedelta(seconds=2)


def check_changed_body(case: Case) -> None:
    """No byte of the body can be changed, added or taken away, nor its JSON rewritten.

    Of a sender that signs parts of the body, such a body may be accepted if it says the same.
    """
    if not case.is_genuine or case.provider.body_is_unsigned:
        return
    body = case.delivery.body
    for at in range(len(body)):
        changed = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        expect(_is_refused(case, changed), f"accepted with byte {at} of the body changed")
    for changed in (body + b" ", b"\n" + body, body + b"\xff", body + b"\x00", body[:-1], b""):
        different = changed != body
        expect(not different or _is_refused(case, changed), "accepted with something added or cut off")
    try:
        data = json.loads(body)
    except ValueError:
        return
    spelled = (json.dumps(data, indent=indent).encode() for indent in (1, 2))
    is_taken = any(each != body and not _is_refused(case, each) for each in spelled)
    expect(not is_taken, "accepted with the JSON rewritten: the raw body must be verified")


def _is_refused(case: Case, body: bytes) -> bool:
    changed = replace(case.delivery, body=body)
    if case.verdict(changed) is not None:
        return True
    if not case.provider.signed_in_parts:
        return False
    try:
        return case.events(changed) == case.events(case.delivery)
    except Rejected:
        return True


def check_changed_signature(case: Case) -> None:
    """No character of a signature's headers can be changed, but for items of a list that it does without."""
    if not case.is_genuine:
        return
    signed = case.signed()
    for name, value in signed.headers.items():
        without = {key: text for key, text in signed.headers.items() if key != name}
        if case.verdict(replace(signed, headers=without)) is None:
            continue

        def is_accepted(changed: str, name: str = name) -> bool:
            return case.verdict(replace(signed, headers={**signed.headers, name: changed})) is None

        items = [item.span() for item in re.finditer("[^,;]+", value)]
        deciding = [(start, end) for start, end in items if not is_accepted(value[:start] + value[end:])]
        expect(deciding, f"accepted without any one item of header {name}")
        for at in chain.from_iterable(range(start, end) for start, end in deciding):
            changed = value[:at] + ("1" if value[at] == "0" else "0") + value[at + 1 :]
            expect(not is_accepted(changed), f"accepted with character {at} of header {name} changed")


def check_wrong_secret(case: Case) -> None:
    """Another secret is `bad_signature`, however old the delivery claims to be."""
    if not case.is_genuine:
        return
    wrong = case.wrong
    verdict = case.verdict(case.delivery, [wrong])
    expect(verdict == Reason.BAD_SIGNATURE, f"with another secret the verdict was {verdict}")
    if not case.signing:
        return
    forged = case.signed(secret=wrong, at=case.now - _YEARS)
    verdict = case.verdict(forged)
    expect(
        verdict == Reason.BAD_SIGNATURE,
        f"a forged delivery of long ago was {verdict}, expected bad_signature",
    )


def check_empty_secrets(case: Case) -> None:
    """No secret, or a blank one, is `no_secret` and opens nothing."""
    if not case.provider.needs_secret:
        return
    deliveries = [case.delivery]
    with suppress(ValueError):
        deliveries.append(case.signed(secret=_ZERO))
    for delivery in deliveries:
        for secrets in ([], [""], ["", " "]):
            verdict = case.verdict(delivery, secrets)
            expect(verdict == Reason.NO_SECRET, f"with secrets {secrets} the verdict was {verdict}")


def check_missing_headers(case: Case) -> None:
    """Without headers a delivery is `missing_header`; one header less raises nothing but Rejected."""
    if not case.is_genuine:
        return
    signed = case.signed()
    if case.signing and set(signed.headers) - {"content-type"}:
        verdict = case.verdict(replace(signed, headers={}))
        expect(verdict == Reason.MISSING_HEADER, f"without any header the verdict was {verdict}")
    for name in case.delivery.headers:
        rest = {key: value for key, value in case.delivery.headers.items() if key != name}
        delivery = replace(case.delivery, headers=rest)
        case.verdict(delivery)
        refusal(lambda delivery=delivery: case.events(delivery))  # type: ignore[misc]


def check_time(case: Case) -> None:
    """A signed time may be as old as the tolerance and no older; ahead of us it may be by minutes, and not by more."""
    tolerance = case.provider.tolerance
    if tolerance is None or not case.is_genuine or not case.signing:
        return
    signed = case.signed()
    least, most = min(tolerance, TOLERANCE), max(tolerance, TOLERANCE)
    for away in (tolerance + _MARGIN, -most - _MARGIN, _YEARS, -_YEARS):
        for delivery in (signed, case.delivery) if case.timed and abs(away) == _YEARS else (signed,):
            verdict = case.verdict(delivery, at=case.now + away)
            expect(verdict == Reason.STALE, f"{away} away from the signed time the verdict was {verdict}")
    for away in (tolerance - _MARGIN, -least + _MARGIN):
        verdict = case.verdict(signed, at=case.now + away)
        expect(verdict is None, f"within the tolerance ({away}) the verdict was {verdict}")
