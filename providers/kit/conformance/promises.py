"""Promises of a provider: about deliveries that are what they seem, and about others."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from hookonce.providers import Delivery, Event, KeyNeeded, Rejected
from hookonce.providers.kit.conformance.cases import Case, expect, refusal
from hookonce.providers.kit.conformance.equal_bytes import check_equal_bytes
from hookonce.providers.kit.conformance.repeats import check_repeats

_SECRET: Final = 8
_LONG: Final = 16
"""Header values shorter than this (a topic, a version) are not taken for signatures."""


def check_genuine(case: Case) -> None:
    """A genuine delivery is accepted; its events are the expected ones, each time alike, and told from others."""
    if not case.is_genuine:
        return
    reason = case.verdict(case.delivery)
    expect(reason is None, f"a genuine delivery was refused as {reason}")
    unread = refusal(lambda: case.events(case.delivery))
    expect(unread is None, f"the events of a genuine delivery were refused as {unread}")
    events = case.events(case.delivery)
    expect(events == case.events(case.delivery), "the same delivery gave other events the second time")
    for event in events:
        _expect_form(event)
    for want, have, what in (
        (case.ids, [event.id for event in events], "ids"),
        (case.types, [event.type for event in events], "types"),
        (case.accounts, [event.account for event in events][:1], "account"),
    ):
        expect(want is None or want == have, f"the events' {what} are {have}, expected {want}")
    check_equal_bytes(case)
    check_repeats(case)


def check_refused(case: Case) -> None:
    """A delivery that was captured to be refused is refused, with its reason."""
    if case.reason is None:
        return
    reason = case.verdict(case.delivery)
    try:
        if reason is None:
            case.events(case.delivery)
    except Rejected as error:
        reason = error.reason
    expect(reason == case.reason, f"refused as {reason}, expected {case.reason}")


def check_rotation(case: Case) -> None:
    """Any of several secrets opens, wherever it stands in the list."""
    if not case.is_genuine or not (case.secret or case.provider.needs_secret):
        return
    wrong = case.wrong
    for secrets in ([case.secret, wrong], [wrong, case.secret], [wrong, "", wrong, case.secret]):
        reason = case.verdict(case.delivery, secrets)
        where = secrets.index(case.secret)
        expect(
            reason is None, f"refused as {reason} with the right secret at place {where} of {len(secrets)}"
        )


def check_signing(case: Case) -> None:
    """Check that what `sign` makes is accepted, depends on its arguments alone, and carries the ids it was told."""
    if not case.is_genuine or not case.signing:
        return
    expect(case.signed() == case.signed(), "sign() gave other headers the second time")
    for name, value in case.signed().headers.items():
        expect(
            name == name.lower() and isinstance(value, str), f"header {name!r} is not lower case with text"
        )
    for body in (case.delivery.body, b'{ "id" : "a",\n "type" : "b.c" }'):
        reason = case.verdict(case.signed(body))
        expect(reason is None, f"a delivery of sign() was refused as {reason}")
    if case.provider.sample:
        ids = [_sample_id(case, number) for number in ("evt_1", "evt_1", "evt_2")]
        expect(ids[0] == ids[1] != ids[2], f"samples signed as evt_1, evt_1, evt_2 gave the event ids {ids}")


def check_silence(case: Case) -> None:
    """No message holds a secret, a signature that would be right, or the body."""
    for text in _secrets(case):
        expect(text not in repr(case.provider), "repr(provider) holds the secret")
    for delivery in _spoilt(case):
        for secrets in ([case.secret], [case.wrong], []):
            said = _said(case, delivery, secrets)
            for text in _hidden(case, delivery, secrets):
                expect(text not in said, "a message holds the secret, the right signature, or the body")


def _spoilt(case: Case) -> Iterator[Delivery]:
    """Return the delivery itself, and versions of it that should be refused for many reasons."""
    yield case.delivery
    yield replace(case.delivery, headers={})
    yield replace(case.delivery, body=case.delivery.body + b" ")
    for name in case.delivery.headers:
        for value in ("", "x", "sha256=00", "t=1,v1=00"):
            yield replace(case.delivery, headers={**case.delivery.headers, name: value})


def _said(case: Case, delivery: Delivery, secrets: list[str]) -> str:
    case.verdict(delivery, secrets)
    try:
        case.provider.verify(delivery, secrets, case.now, **case.fetched)
    except Rejected as error:
        return f"{error} {error!r} {error.detail} {error.__cause__}"
    except KeyNeeded as needed:
        return f"{needed} {needed!r}"
    return ""


def _secrets(case: Case) -> list[str]:
    """Return the secret with and without its prefix; a short one may be a word that messages use."""
    return [text for text in (case.secret, case.secret.partition("_")[2]) if len(text) >= _SECRET]


def _hidden(case: Case, delivery: Delivery, secrets: list[str]) -> list[str]:
    """Return what a message about `delivery` must not hold; names of headers, which some headers list, it may."""
    signing = case.is_genuine and case.signing
    headers = case.signed(delivery.body, secrets[0] if secrets else None).headers if signing else {}
    right = headers.values()
    parts = [part for value in right for mark in ("=", ",", " ") for part in value.split(mark)]
    texts = {*right, *parts, delivery.body.decode("latin-1")} - headers.keys()
    long = [text for text in texts if len(text) >= _LONG]
    return [*_secrets(case), *long]


def _sample_id(case: Case, event_id: str) -> str:
    body = case.provider.sample(event_id, "sample.type") if case.provider.sample else b""
    url = case.delivery.url
    delivery = case.provider.delivery(body, case.signing, case.now, event_id=event_id, url=url)
    expect(case.verdict(delivery) is None, "a signed sample was refused")
    events = case.events(delivery)
    expect(len(events) == 1, f"a sample has {len(events)} events, expected one")
    return events[0].id


def _expect_form(event: Event) -> None:
    expect(isinstance(event.id, str) and event.id, f"an event's id is {event.id!r}, expected a text")
    expect(isinstance(event.type, str) and event.type, f"an event's type is {event.type!r}, expected a text")
    expect(event.occurred_at is None or event.occurred_at.tzinfo, "occurred_at is without a time zone")
