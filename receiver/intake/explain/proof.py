"""The proof that a delivery is genuine, for its page: the headers of the proof, and whether it still holds."""

from dataclasses import dataclass, replace
from datetime import datetime

from hookonce.providers import Delivery
from hookonce.providers.kit.reading.content_coding import HEADER
from hookonce.receiver.intake.explain.checks import Case, checks, secret_number
from hookonce.receiver.ledger.decryption import Body
from hookonce.receiver.source import Source

_HEADER = "header "
_ANY = "any"
"""What is expected of a header that names an id or a type, which nothing vouches for."""


@dataclass(frozen=True, slots=True)
class Proof:
    """How deliveries of this source prove themselves, which headers do it, and under which secret this one holds now.

    `secret` is the secret's reference, None where it can't be checked again.
    """

    summary: str
    headers: frozenset[str]
    secret: str | None
    id_is_signed: bool


def proof(source: Source | None, received_at: datetime, body: Body | None) -> Proof | None:
    """Check a stored delivery again; None where its source is not configured any more, or its body is gone."""
    if source is None or body is None or body.unreadable:
        return None
    delivery = Delivery(source.provider.methods[0], source.signed_url(body.url), body.headers, body.body)
    if body.sent is not None and not source.provider.verifies_text:
        delivery = replace(delivery, headers=body.headers | {HEADER: body.coding}, body=body.sent)
    case = Case(source, delivery, received_at)
    named = {
        check.what.removeprefix(_HEADER)
        for check in checks(case)
        if check.what.startswith(_HEADER) and check.expected != _ANY
    }
    holds = bool(source.secrets) and case.signs()
    slot = secret_number(case) if holds else None
    return Proof(
        source.provider.summary,
        frozenset(named & set(body.headers)),
        source.secret_name(slot) if slot else None,
        source.provider.id_is_signed,
    )
