"""Why a delivery that was rejected was: of one that is kept whole, as of its arrival and with the secrets of now.

A delivery is whole in quarantine, and in the log of rejected deliveries where its body is short and nothing in it is
masked. Of any other the headers are looked at.
"""

from contextlib import suppress
from dataclasses import replace

import psycopg

from hookonce.providers import Delivery, Reason, Rejected
from hookonce.providers.kit.reading.content_coding import decoded
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.encryption import CannotDecrypt
from hookonce.receiver.intake.background_writer import MAX_BODY_PREFIX
from hookonce.receiver.intake.explain.causes import Explanation, explain
from hookonce.receiver.intake.explain.checks import case_of
from hookonce.receiver.ledger import quarantine
from hookonce.receiver.ledger.decryption import unpack
from hookonce.receiver.ledger.rejected import Rejection
from hookonce.receiver.privacy.masking import MASK
from hookonce.receiver.source import Source

NOT_CHECKED = "the signature was not checked again: only the beginning of the body is kept"
_MOST = 50
"""Deliveries in quarantine that are opened to find one."""


def explain_rejection(
    connection: psycopg.Connection, settings: Settings, source: Source, row: Rejection
) -> Explanation:
    """Explain a row of the rejected deliveries, which is opened."""
    delivery = _in_quarantine(connection, settings, row)
    is_whole = delivery is not None or _is_whole(source, row)
    if delivery is None:
        url = source.url_of(f"/hooks/{source.name}", "")
        delivery = Delivery(source.provider.methods[0], url, row.headers, row.body_prefix)
    if source.provider.verifies_text:
        with suppress(Rejected):  # the checks show its coding
            delivery = decoded(delivery, settings.max_body)
    case = case_of(source, delivery, row.rejected_at, settings.sources, is_whole=is_whole)
    found = explain(case)
    if not is_whole:
        detail = f"{row.detail}; {NOT_CHECKED}"
        return replace(found, reason=Reason(row.reason), detail=detail)
    if found.reason is None:
        cause = "it is genuine with the secrets that are configured now"
        return replace(
            found, cause=cause, advice=f"`hookonce reverify {source.name}` takes in what is kept whole"
        )
    return found


def _in_quarantine(connection: psycopg.Connection, settings: Settings, row: Rejection) -> Delivery | None:
    """Return the delivery from quarantine that a row is about: one that begins as it does."""
    about = (row.source, row.reason, row.rejected_at)
    for held in quarantine.kept_about(connection, *about, _MOST):
        with suppress(CannotDecrypt):
            delivery = unpack(held.opened(settings.keyring))
            unmasked = {name: text for name, text in row.headers.items() if text != MASK}
            is_same = unmasked.items() <= delivery.headers.items()
            if is_same and (MASK.encode() in row.body_prefix or delivery.body.startswith(row.body_prefix)):
                return delivery
    return None


def _is_whole(source: Source, row: Rejection) -> bool:
    """Whether a row has all that its sender signs: neither the URL's query nor what is masked is kept."""
    texts = (*row.headers.values(), row.body_prefix.decode("latin-1"))
    is_kept = source.keep_body and not source.redact and len(row.body_prefix) < MAX_BODY_PREFIX
    return is_kept and not source.provider.signs_url and not any(MASK in text for text in texts)
