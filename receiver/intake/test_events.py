"""Test events: a sample of a source's sender, signed with its secret and taken in as a delivery, since somebody asked.

Handlers run on them as on any event, and see `event.is_test`. So outside `hookonce dev` a source has to allow them.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import psycopg

from hookonce.providers import Rejected
from hookonce.receiver.intake.pipeline import Intake
from hookonce.receiver.ledger.access import audit_log
from hookonce.receiver.ledger.store import Stored
from hookonce.receiver.outbound.key_fetcher import KeyUnavailable
from hookonce.receiver.samples import documents, files
from hookonce.receiver.source import Source

ACTION = "test event"


class NotPossible(Exception):  # noqa: N818  a state of the configuration
    """No test event can be sent to this source; the text says why, and what would change that."""


def types(source: Source) -> Sequence[str]:
    """List the types that a test event of a source can be of, the usual one first; none for any."""
    return files.types(source.provider.name)


def send(
    intake: Intake, connection: psycopg.Connection, source: Source, kind: str | None, who: str
) -> tuple[Stored, str, str]:
    """Send a source an event of a type (None: its sender's usual one); return its row, id and type.

    It is audited first, and then stored: none comes in that nobody asked for. Raises: `NotPossible`, LookupError
    naming the nearest type, `LedgerUnavailable`.
    """
    if not source.tests:
        raise NotPossible(
            f"source '{source.name}' takes no test events; set tests = true in [sources.{source.name}]"
        )
    secret = next(iter(source.secrets), "")
    if source.provider.needs_secret and not secret and not source.unauthenticated:
        raise NotPossible(f"source '{source.name}' has no signing secret; set {source.secret_places}")
    now = datetime.now(UTC)
    document = documents.fresh(source.provider, kind, now)
    try:
        delivery = document.delivery(secret, now, f"{source.public_url}/hooks/{source.name}")
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
