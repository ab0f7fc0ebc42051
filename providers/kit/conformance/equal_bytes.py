"""Two events that differ in nothing but what tells them apart are two, and an event that is sent again is one.

The sender declares what tells them apart, and what a retry changes (`events.identity`). Here both are done to
each captured delivery, after it is decrypted if its sender encrypts; who signed it is asked elsewhere.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from hookonce.providers import Delivery, Event, Rejected
from hookonce.providers.kit.conformance.cases import Case, expect
from hookonce.providers.kit.conformance.other_events import with_other
from hookonce.providers.kit.events.fingerprint import fingerprint
from hookonce.providers.kit.events.identity import RECEIPT, SIGNED_PERIOD, SIGNED_TIME, Identity

_MOMENT: Final = timedelta(seconds=1)
_LATER: Final = timedelta(hours=1)


def check_equal_bytes(case: Case) -> None:
    """Another event in otherwise equal bytes has another id, and a retry has the same; each sender says how."""
    identity = case.provider.identity
    expect(identity, "nothing says what tells two events apart: Sender(identity=told_apart_by(…))")
    if not case.is_genuine or identity is None:
        return
    sent = _decoded(case, case.delivery)
    events = case.provider.events(sent)
    if events:
        _expect_another(case, identity, sent, events)
        _expect_the_same(case, identity, sent, events)


def _expect_another(case: Case, identity: Identity, sent: Delivery, events: list[Event]) -> None:
    """The first alternative that is there counts, and each of its places makes a difference."""
    made = [[(place, _changed(case, sent, place)) for place in group] for group in identity.tells]
    there = next((group for group in made if all(delivery is not None for _, delivery in group)), None)
    expect(there, f"none of what tells events apart is in this delivery: {', '.join(identity.places)}")
    for place, delivery in there or ():
        if place == RECEIPT:
            counts = case.provider.id_period and all(event.is_undated is not False for event in events)
            expect(counts, "the time of receipt is said to tell events apart, and is no part of their ids")
        elif delivery is not None and delivery is not sent:
            after = [event.id for event in _events(case, delivery)]
            differ = [new for event, new in zip(events, after, strict=False) if new != event.id]
            expect(differ, f"another event by its {place} has the same id")


def _expect_the_same(case: Case, identity: Identity, sent: Delivery, events: list[Event]) -> None:
    for place in dict.fromkeys((*identity.new_on_retry, *case.provider.volatile)):
        again = None if place.startswith("signed") else with_other(sent, place)
        if again is None:
            continue
        _expect_known(events, _events(case, again), f"a retry with another {place}")
        volatile = case.provider.volatile
        same = fingerprint(sent.body, volatile) == fingerprint(again.body, volatile)
        expect(
            same or place not in identity.new_on_retry,
            f"a retry with another {place} is another body; declare it volatile",
        )
    if case.provider.tolerance and case.signing and SIGNED_TIME not in identity.places:
        first, again_signed = (_events(case, _signed(case, later)) for later in (timedelta(), _MOMENT))
        _expect_known(first, again_signed, "what is signed again a second later")


def _expect_known(first: list[Event], again: list[Event], what: str) -> None:
    """Each event of `again` is known by its id, or by that of another attempt."""
    ids = {event.id for event in first}
    expect(all(ids & {event.id, *event.retry_ids} for event in again), f"{what} is another event")


def _events(case: Case, delivery: Delivery) -> list[Event]:
    try:
        return case.provider.events(delivery)
    except Rejected as error:
        raise AssertionError(f"an event that differs in its identity is refused: {error}") from None


def _changed(case: Case, sent: Delivery, place: str) -> Delivery | None:
    """Return the delivery as another event's; itself where no change of it shows that, None if it can't be."""
    if place in {SIGNED_TIME, SIGNED_PERIOD}:
        return _signed(case, _LATER) if case.signing else sent
    return sent if place == RECEIPT else with_other(sent, place)


def _decoded(case: Case, delivery: Delivery) -> Delivery:
    return case.provider.decode(delivery, [case.secret]) if case.provider.decode else delivery


def _signed(case: Case, later: timedelta) -> Delivery:
    made = case.signed(at=case.now + later)
    return _decoded(case, replace(made, headers={**case.delivery.headers, **made.headers}))
