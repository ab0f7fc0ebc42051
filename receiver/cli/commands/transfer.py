"""`hookonce events export` and `import`: events as lines of JSON, from one ledger into another."""

import sys
from collections.abc import Iterable, Iterator
from typing import IO, Any

import click
from pydantic import ValidationError

from hookonce.receiver.cli.connections import configured, ledger, notify_workers, operator
from hookonce.receiver.cli.exported_event import ExportedEvent, why_refused
from hookonce.receiver.cli.options.event_options import choosing, given_of
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import print_json
from hookonce.receiver.desk.models import as_text
from hookonce.receiver.encryption import CannotDecrypt
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.replay import transfer
from hookonce.receiver.ledger.replay.transfer import Kept, Taken
from hookonce.receiver.ledger.store import Key, NewEvent
from hookonce.receiver.privacy.at_rest import imported

IMPORT_BATCH = 100
MAX_BATCH_BYTES = 8 * 1024 * 1024
"""Bytes of bodies that one statement takes in."""


@click.command("export")
@choosing
@click.option("--runs", is_flag=True, help="With the runs of each event.")
@click.option(
    "--output", type=click.File("w", encoding="ascii", lazy=True), default="-", help="A file; default stdout."
)
def export(*, runs: bool, output: IO[str], **options: Any) -> None:  # noqa: ANN401  options
    """Write events as JSON, one per line, oldest first.

    With headers, and the body as text or, if it is none, base64. Credentials in headers were never stored.
    Bodies that are sealed at rest are written open.
    """
    settings = configured()
    with ledger(settings) as connection:
        for event in transfer.kept(connection, settings.keyring, Filter(**given_of(options)), runs=runs):
            print_json(_document(event, runs=runs), output)


@click.command("import")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--run/--no-run", default=False, help="Run them now; default: hold them, for `replay --status held`."
)
def import_(file: IO[bytes], *, run: bool) -> None:
    """Take in events that `hookonce events export` wrote.

    FILE may be - for stdin. What the ledger has already, by source and event id, is a duplicate, so the same
    file may be taken in again. Exit 3 if lines could not be taken in, each with its reason on stderr.
    """
    settings = configured()
    taken, refused = Taken(), 0
    with ledger(settings) as connection:
        for batch, wrong in _batches(file):
            refused += wrong
            events = [imported(event, settings.sources, settings.keyring) for event in batch]
            transfer.take(connection, events, operator(), taken, run=run)
    if run and taken.new:
        notify_workers(settings)
    tell(
        f"{taken.new} new{'' if run else ' and held'}, {taken.known} known, "
        f"{taken.conflicts} known with another body, {refused} refused"
    )
    if refused:
        sys.exit(Exit.PARTIAL if taken.new or taken.known else Exit.FAILURE)


def _document(event: Kept, *, runs: bool) -> dict[str, Any]:
    body = event.body
    if body is not None and isinstance(body.content, CannotDecrypt):
        raise type(body.content)(f"event {event.row['id']} can't be exported: {body.content}")
    document = {
        **event.row,
        "fingerprint": event.fingerprint.hex(),
        "id_is_signed": event.id_is_signed,
        "is_element": event.is_element,
        "url": body.url if body else None,
        "headers": body.headers if body else None,
        **as_text(body.body if body else None),
    }
    return document | {"runs": event.runs} if runs else document


def _batches(file: Iterable[bytes]) -> Iterator[tuple[list[NewEvent], int]]:
    """Yield batches of events with distinct keys, none too large, and how many lines before were not events."""
    batch: dict[Key, NewEvent] = {}
    size = wrong = 0
    for number, raw in enumerate(file, 1):
        if not raw.strip():
            continue
        event = _event(number, raw)
        if event is None:
            wrong += 1
            continue
        if event.key in batch or len(batch) == IMPORT_BATCH or size + len(event.body) > MAX_BATCH_BYTES:
            yield list(batch.values()), wrong
            batch, size, wrong = {}, 0, 0
        batch[event.key] = event
        size += len(event.body)
    yield list(batch.values()), wrong


def _event(number: int, raw: bytes) -> NewEvent | None:
    try:
        return ExportedEvent.model_validate_json(raw).event()
    except ValidationError as error:
        tell(f"line {number}: {why_refused(error)}")
    except ValueError:
        tell(f"line {number}: body_b64 is not base64")
    return None
