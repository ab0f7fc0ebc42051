"""Test events: a sample of a source's sender, signed with its secret and taken in as a delivery, since somebody asked.

Handlers run on them as on any event, and see `event.is_test`. So outside `hookonce dev` a source has to allow them.

A stored event may be sent again with another body. It is then another event: it gets an id of its own, its header
`hookonce-edited-from` names the event that it was made of, and it is held unless handlers are to run on it.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

import psycopg

from hookonce.providers import Delivery, Rejected
from hookonce.receiver.intake.new_events import ledger_id
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.decryption import Body
from hookonce.receiver.ledger.store import Stored, Verdict
from hookonce.receiver.outbound.key_fetcher import KeyUnavailable
from hookonce.receiver.outbound.signing import EventName, NotSigned, signed_anew
from hookonce.receiver.samples import documents, files
from hookonce.receiver.samples.fresh_ids import reshaped
from hookonce.receiver.source import Source

ACTION = "test event"
ACTION_EDITED = "send edited"
EDITED_FROM = "hookonce-edited-from"
"""The header that names the ledger id of the event that a test event was made of."""
MAX_EDITED = 48 * 1024
"""Bytes of a body that is edited: with what else a form or a request of the API has, it fits into 64 KB."""
_FOUND_IN_BODIES = 8
"""Characters of an id that is told from other text of a body; one that is shorter is left alone."""


class Edit(NamedTuple):
    """A stored event by its ledger id and the sender's, its source, and the body that it is to have instead."""

    source: Source
    origin: int
    event_id: str
    type: str
    stored: Body
    body: bytes


class NotPossible(Exception):  # noqa: N818  a state of the configuration
    """No test event can be sent to this source; the text says why, and what would change that."""


def types(source: Source) -> Sequence[str]:
    """List the types that a test event of a source can be of, the usual one first; none for any."""
    return files.types(source.provider.name)


def require_type(provider: str, kind: str) -> None:
    """Raise LookupError, with the nearest type, if a sender has samples and none of this type."""
    files.sample(provider, kind)


def send(
    intake: Intake, connection: psycopg.Connection, source: Source, kind: str | None, who: str
) -> tuple[Stored, str, str]:
    """Send a source an event of a type (None: its sender's usual one); return its row, id and type.

    It is audited first, and then stored: none comes in that nobody asked for. Raises: `NotPossible`, LookupError
    naming the nearest type, `LedgerUnavailable`.
    """
    secret = _secret(source)
    now = datetime.now(UTC)
    document = documents.fresh(source.provider, kind, now)
    try:
        delivery = document.delivery(secret, now, source.url_of())
    except ValueError as error:
        raise NotPossible(
            f"nothing can be signed with the secret of source '{source.name}': {error}"
        ) from None
    detail = {"type": document.type, "event_id": document.event_id}
    audit_log.note(connection, who, ACTION, f"source {source.name}", detail)
    try:
        result = intake.take_test(source, delivery)
    except (Rejected, KeyUnavailable) as error:
        raise NotPossible(f"source '{source.name}' refused its own test event: {error}") from None
    (event_id, _), *_ = result.events
    return result.rows[0], event_id, document.type


def edited(edit: Edit, now: datetime) -> Delivery:
    """Return what the sender would send, had the event this body, with an id of its own. Raises: `NotPossible`."""
    source, origin, own_id, kind, stored, body = edit
    secret = _secret(source)
    if stored.unreadable:
        raise NotPossible(f"the body of event {origin}: {stored.unreadable}")
    if len(body) > MAX_EDITED:
        raise NotPossible(f"the body has {len(body)} bytes, and at most {MAX_EDITED} can be edited and sent")
    name = EventName(str(reshaped(own_id)), kind)
    headers = {key: _renamed(value, own_id, name.id) for key, value in stored.headers.items()}
    if len(own_id) >= _FOUND_IN_BODIES:
        text = body.decode(errors="surrogateescape")
        body = _renamed(text, own_id, name.id).encode(errors="surrogateescape")
    delivery = Delivery("POST", source.url_of(), headers, body)
    try:
        signed = signed_anew(source.provider, secret, delivery, name, now, is_element=stored.is_element)
    except NotSigned as error:
        raise NotPossible(f"nothing can be signed for source '{source.name}': {error}") from None
    return replace(signed, headers={**signed.headers, EDITED_FROM: str(origin)})


def send_edited(
    intake: Intake, connection: psycopg.Connection, edit: Edit, who: str, *, runs: bool
) -> tuple[Stored, str, str]:
    """Send a stored event again with another body; return its row, id and type. Handlers run on it if it `runs`.

    It is audited first, as `send` is. Raises: `NotPossible`, `LedgerUnavailable`.
    """
    source, origin, now = edit.source, edit.origin, datetime.now(UTC)
    delivery = edited(edit, now)
    try:
        read = intake.reverify(source, delivery, now, store=False)
    except (Rejected, KeyUnavailable) as error:
        raise NotPossible(f"source '{source.name}' refuses the edited event: {error}") from None
    if len(read.events) != 1:
        raise NotPossible(f"the edited body is {len(read.events)} events of its sender; expected one")
    if ledger_id(read.events[0][0]) == edit.event_id:
        raise NotPossible(
            f"the edited body still has the id of event {origin}, {edit.event_id!r}; "
            "change what of the body this id is, or is made of"
        )
    detail = {"event_id": ledger_id(read.events[0][0]), "runs": runs}
    audit_log.note(connection, who, ACTION_EDITED, f"event {origin}", detail)
    try:
        result = intake.take_test(source, delivery, hold=not runs)
    except (Rejected, KeyUnavailable) as error:
        raise NotPossible(f"source '{source.name}' refuses the edited event: {error}") from None
    [row], [new] = result.rows, result.new
    if row.verdict in {Verdict.DUPLICATE, Verdict.CONFLICT}:
        raise NotPossible("an event with this id is in the ledger already; change the id in the body")
    return row, new.event_id, new.type


def _secret(source: Source) -> str:
    """Return what test events of a source are signed with. Raises: `NotPossible`."""
    if not source.tests:
        raise NotPossible(
            f"source '{source.name}' takes no test events; set tests = true in [sources.{source.name}]"
        )
    secret = next(iter(source.secrets), "")
    if source.provider.needs_secret and not secret and not source.unauthenticated:
        raise NotPossible(f"source '{source.name}' has no signing secret; set {source.secret_places}")
    return secret


def _renamed(text: str, event_id: str, new_id: str) -> str:
    """Return a text in which an event has another id, wherever the whole id stands."""
    return re.sub(rf"(?<![A-Za-z0-9_]){re.escape(event_id)}(?![A-Za-z0-9_])", lambda _: new_id, text)
