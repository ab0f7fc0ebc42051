"""Whether what comes again with the signature of a delivery is known for its repeat, however it is written.

The id of such a delivery may be anybody's. What was signed is not: a form with its fields in another order, text that
is escaped, a body of whose values a few are signed. Each delivery is changed in every way in which an id can be
(`unsigned_ids`), and what is still accepted has the mark of the first, or the fingerprint of its body, whether or not
that change gave it another id: another change may do so.
"""

from dataclasses import replace

from hookonce.providers import Delivery, Event, Rejected
from hookonce.providers.kit.conformance.cases import Case, expect
from hookonce.providers.kit.conformance.unsigned_ids import changes
from hookonce.providers.kit.events.fingerprint import fingerprint

_ANY_BODY = b'{"made": "up"}'


def check_repeats(case: Case) -> None:
    """Whatever is accepted with a signature that came before, under another id, is known for a repeat.

    Where only a token vouches for a delivery nothing is signed, and there is nothing to know it by.
    """
    provider = case.provider
    if not case.is_genuine or provider.id_is_signed or not _is_signed(case):
        return
    known = [marks(case, case.delivery, event) for event in _events(case, case.delivery)]
    for place, changed in changes(case):
        if case.verdict(changed) is not None:
            continue
        found = [marks(case, changed, event) for event in _events(case, changed)]
        expect(
            all(any(mark & each for each in known) for mark in found),
            f"after {place} it is accepted, and under another id nothing tells that its signature came before; "
            "say what is signed: Sender(signed_message=…)",
        )


def marks(case: Case, delivery: Delivery, event: Event) -> set[bytes]:
    """Return what a repeat of an event is known by: its body's fingerprint, and what was signed."""
    read, provider = _decoded(case, delivery), case.provider
    body = read.body if event.raw is None else event.raw
    known = provider.nonce_mark(read, event) or fingerprint(body, provider.volatile)
    return {known, provider.repeat_mark(read, event) or known}


def _is_signed(case: Case) -> bool:
    """Whether a signature covers anything that an event is: with a token any body is accepted."""
    if case.provider.signed_message or case.provider.nonce:
        return True
    return case.verdict(replace(case.delivery, body=_ANY_BODY, readings={})) is not None and not (
        case.provider.body_is_unsigned
    )


def _events(case: Case, delivery: Delivery) -> list[Event]:
    try:
        return case.events(delivery)
    except Rejected:
        return []


def _decoded(case: Case, delivery: Delivery) -> Delivery:
    return case.provider.decode(delivery, [case.secret]) if case.provider.decode else delivery
