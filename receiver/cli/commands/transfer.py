"""`hookonce events export` and `import`: events as lines of JSON, from one ledger into another."""

import sys
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

import click
from pydantic import ValidationError

from hookonce.receiver.cli.desk import own_desk
from hookonce.receiver.cli.options.event_options import choosing, given_of
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean, print_json
from hookonce.receiver.desk.feeds.transfer import ExportedEvent, exported, take_in, why_refused
from hookonce.receiver.desk.filters import Filter

IMPORT_BATCH = 100
MAX_BATCH_BYTES = 8 * 1024 * 1024
"""Bytes of bodies that one statement takes in."""


@click.command("export")
@choosing
@click.option(
    "--output", type=click.File("w", encoding="ascii", lazy=True), default="-", help="A file; default stdout."
)
def export(*, output: IO[str], **options: Any) -> None:  # noqa: ANN401  options
    """Write events as JSON, one per line, oldest first.

    With headers, and the body as text or, if it is none, base64. Credentials in headers were never stored.
    Bodies that are sealed at rest are written open.
    """
    with own_desk() as here:
        for document in exported(here, Filter(**given_of(options))):
            print_json(document, output)


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
    counts: Counter[str] = Counter()
    with own_desk() as here:
        for batch in filter(None, _batches(file, counts)):
            taken = take_in(here, batch, run=run)
            counts.update(new=taken.new, known=taken.known, conflicts=taken.conflicts)
    tell(
        f"{counts['new']} new{'' if run else ' and held'}, {counts['known']} known, "
        f"{counts['conflicts']} known with another body, {counts['refused']} refused"
    )
    if counts["refused"]:
        sys.exit(Exit.PARTIAL if counts["new"] or counts["known"] else Exit.FAILURE)


def _batches(file: IO[bytes], counts: Counter[str]) -> Iterator[list[ExportedEvent]]:
    """Yield batches of events with distinct keys, none too large; count the lines that are `refused`."""
    batch: dict[tuple[str, str], ExportedEvent] = {}
    size = 0
    for number, raw in enumerate(file, 1):
        if not raw.strip():
            continue
        try:
            event = ExportedEvent.model_validate_json(raw)
        except ValidationError as error:
            why = f"{why_refused(error)}; expected a line that `hookonce events export` wrote"
            tell(f"{clean(file.name)} line {number}: {why}")
            counts["refused"] += 1
            continue
        key, more = (event.source, event.event_id), len(event.content)
        if key in batch or len(batch) == IMPORT_BATCH or size + more > MAX_BATCH_BYTES:
            yield list(batch.values())
            batch, size = {}, 0
        batch[key] = event
        size += more
    yield list(batch.values())
