"""Follows the events of another inbox: each once and in order, whatever sleeps or breaks meanwhile.

How far it has come is the other inbox's own word, a cursor, kept in a file here: it is written after the events of a
page are taken, so a page that was taken when the machine stopped is given again, and whoever takes it knows them.
"""

import fcntl
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, Field, ValidationError

from hookonce.receiver.remote.client import Client, pause
from hookonce.receiver.remote.errors import Refused, RemoteError, Unreachable
from hookonce.receiver.remote.profiles import write_whole

LONGEST_WAIT: Final = timedelta(seconds=60)
"""Between two pages, whatever the other inbox says."""
SHORTEST_WAIT: Final = timedelta(seconds=0.2)
_MOST: Final = 64 * 1024
"""Bytes of a cursor's file; a longer one is not ours."""
_Answer = TypeVar("_Answer", bound=BaseModel)
_OVER = {"pull_over", "other_ledger"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events of the other inbox: all, or those of a source and a type (`invoice.*`), since some time."""

    since: datetime
    source: str | None = None
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Events as `GET /pulls/{pull}/events` gives them, and how many come behind them, at most."""

    events: list[dict[str, Any]]
    behind: int


class _Pull(BaseModel):
    id: int = Field(ge=1)
    cursor: str = Field(min_length=1, max_length=16_384)
    has_bodies: bool
    oldest_at: datetime | None


class _Page(BaseModel):
    data: list[dict[str, Any]]
    next: str = Field(min_length=1, max_length=16_384)
    behind: int = Field(ge=0)
    wait: float = Field(ge=0)


class CursorFile:
    """Where a pull has come to, in a file for its owner alone (mode 0600) that one process has at a time.

    `since` is from when on everything was taken that is before the cursor.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.cursor: str | None = None
        self.since: datetime | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it as long as the block lasts. Raises: `RemoteError` where another process does, or it can't be read."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._path.with_suffix(".lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RemoteError(f"another process pulls by {self._path}; stop it first") from None
            self._read()
            yield

    def move(self, cursor: str, since: datetime) -> None:
        """Keep a cursor, on the disk when this returns. Raises: OSError."""
        write_whole(self._path, json.dumps({"cursor": cursor, "since": since.isoformat()}) + "\n")
        self.cursor, self.since = cursor, since

    def _read(self) -> None:
        try:
            with self._path.open("rb") as file:
                kept = json.loads(file.read(_MOST))
            self.cursor, self.since = str(kept["cursor"]), datetime.fromisoformat(kept["since"])
        except FileNotFoundError:
            return
        except (ValueError, LookupError, TypeError):
            raise RemoteError(f"{self._path} can't be read; remove it to begin anew") from None


class Puller:
    """Pulls from one inbox. `tell` gets a line where something is out of order; nothing of it ends the pull."""

    def __init__(self, client: Client, wanted: Wanted, file: CursorFile, tell: Callable[[str], None]) -> None:
        self._client = client
        self._wanted = wanted
        self._file = file
        self._tell = tell
        self._tries = 0

    def pages(self, ended: threading.Event, *, follows: bool) -> Iterator[Page]:
        """Yield page by page until `ended` is set, or, unless it `follows`, until there is no more.

        The cursor moves when the next page is asked for. Raises: `RemoteError` where trying again helps nothing.
        """
        pull: _Pull | None = None
        while not ended.is_set():
            try:
                if pull is None:
                    pull = self._begun()
                    cursor = pull.cursor
                page = self._asked(_Page, f"/pulls/{pull.id}/events", cursor=cursor)
            except Unreachable as error:
                self._note(error)
                ended.wait(pause(self._tries, error.wait).total_seconds())
                continue
            except Refused as error:
                if error.code not in _OVER or pull is None:
                    raise
                pull = None
                continue
            if self._tries:
                self._tell(f"{self._client.url} answers again")
                self._tries = 0
            yield Page(page.data, page.behind)
            cursor = page.next
            self._file.move(cursor, self._since)
            if not page.data and not page.behind and not follows:
                return
            if not page.behind or not page.data:
                wait = min(max(timedelta(seconds=page.wait), SHORTEST_WAIT), LONGEST_WAIT)
                ended.wait(wait.total_seconds())
            else:
                ended.wait(max(min(page.wait, LONGEST_WAIT.total_seconds()), 0.0))

    @property
    def _since(self) -> datetime:
        """From when on nothing is missing."""
        return min(self._wanted.since, self._file.since or self._wanted.since)

    def _begun(self) -> _Pull:
        """Begin a pull where the last one ended, unless that began later than what is wanted now."""
        kept = self._file
        goes_on = kept.cursor is not None and kept.since is not None and kept.since <= self._wanted.since
        asked = {"source": self._wanted.source, "type": self._wanted.type}
        since = self._wanted.since.astimezone(UTC).isoformat()
        try:
            pull = self._post(asked | {"cursor": kept.cursor} if goes_on else asked | {"since": since})
        except Refused as error:
            if error.code != "other_ledger" or not goes_on:
                raise
            self._tell(f"{error}; it is pulled anew, from {since} on")
            kept.cursor = None
            pull = self._post(asked | {"since": since})
            goes_on = False
        if not pull.has_bodies:
            raise RemoteError(
                f"the token of {self._client.url} lets no bodies leave; make one there with "
                "`hookonce tokens create NAME --scope read --scope bodies`, and `hookonce login` again"
            )
        if not goes_on and pull.oldest_at is not None and pull.oldest_at > self._wanted.since:
            self._tell(
                f"{self._client.url} has events from {pull.oldest_at.isoformat(timespec='seconds')} on"
            )
        return pull

    def _post(self, body: dict[str, Any]) -> _Pull:
        given = {name: value for name, value in body.items() if value is not None}
        return self._read(_Pull, self._client.post("/pulls", given, tries=1))

    def _asked(self, kind: type[_Page], path: str, **query: str) -> _Page:
        return self._read(kind, self._client.get(path, tries=1, **query))

    def _read(self, kind: type[_Answer], answer: dict[str, Any]) -> _Answer:
        try:
            return kind.model_validate(answer)
        except ValidationError:
            raise RemoteError(
                f"what answers at {self._client.url} is no inbox that this version knows"
            ) from None

    def _note(self, error: Unreachable) -> None:
        """Tell of the first of several failures."""
        self._tries += 1
        if self._tries == 1:
            self._tell(f"{error}; it is tried again until it answers")
