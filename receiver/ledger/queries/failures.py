"""Failed attempts, opened where the keys are here: those of an event, and the newest of an issue. Reads only."""

from datetime import datetime
from typing import Annotated, Any

import psycopg
from psycopg.rows import dict_row
from pydantic import Field

from hookonce.receiver.encryption import Keyring, traceback_context
from hookonce.receiver.ledger import traceback_frames
from hookonce.receiver.ledger.decryption import opened
from hookonce.receiver.ledger.rows import IssueId, Ours
from hookonce.receiver.ledger.traceback_frames import Traceback
from hookonce.receiver.ledger.withheld import Content, ContentRow, brief

_LATEST_OF_ISSUE = """
SELECT event, handler, cycle, attempt, started_at, failed_at, error, issue, traceback, key_id
FROM hookonce.failures WHERE issue = %s ORDER BY id DESC LIMIT 1
"""


class Failure(ContentRow):
    """A failed attempt; of the newest 50 of an event with its traceback."""

    handler: Ours
    cycle: int
    attempt: int
    failed_at: datetime
    error: Annotated[str, Content(brief)]
    issue: IssueId | None = Field(description="which issue it is of; null where the event could not be read")
    started_at: datetime | None = Field(description="when it began; null where that is not known")
    traceback: str | None = Field(
        description="the exception with its causes, the newest last; null where there was none, as when a worker died"
    )
    frames: Annotated[Traceback | None, Content(Traceback.brief)] = Field(
        description="the traceback as data; null if there is no traceback"
    )
    unreadable: Ours | None = Field(description="why the traceback can't be decrypted here; it is then null")

    @property
    def said(self) -> str:
        """The error with its text, which is in the traceback alone where errors are sealed."""
        return self.frames.whole(self.error) if self.frames and ": " not in self.error else self.error

    def _public(self) -> dict[str, object]:
        public = super()._public()
        frames = public.get("frames")
        return public | {"traceback": frames.text} if isinstance(frames, Traceback) else public


def latest_of_issue(connection: psycopg.Connection, issue: str, keyring: Keyring) -> Failure | None:
    """Return the newest failed attempt of an issue; None if none is kept."""
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(_LATEST_OF_ISSUE, [issue]).fetchone()
    return None if row is None else failure(keyring, row.pop("event"), row)


def failure(keyring: Keyring, event: int, row: dict[str, Any]) -> Failure:
    """Open a row of `failures`: its `traceback` as text, and as data (`frames`).

    Both are None where none was kept, or it can't be opened; then `unreadable` says why.
    """
    bond = traceback_context(event, row["handler"], row["cycle"], row["attempt"])
    kept, key = row.pop("traceback"), row.pop("key_id")
    found, unreadable = (b"", None) if kept is None else opened(keyring, kept, key, bond)
    frames = traceback_frames.parse(found)
    return Failure(**row, traceback=frames.text if frames else None, frames=frames, unreadable=unreadable)
