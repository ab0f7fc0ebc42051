"""Follows the events of another inbox: each once and in order, whatever sleeps or breaks meanwhile.

How far it has come is the other inbox's own word, a cursor, kept in a file here: it is written after the events of a
page are taken, so a page that was taken when the machine stopped is given again, and whoever takes it knows them.
"""

import fcntl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from pydantic import AwareDatetime, BaseModel, Field, TypeAdapter, ValidationError

from hookonce.receiver.remote.client import Client, pause
from hookonce.receiver.remote.errors import NO_INBOX, Refused, RemoteError, Unreachable
from hookonce.receiver.remote.profiles import write_whole

LONGEST_WAIT: Final = timedelta(seconds=60)
"""Between two pages, whatever the other inbox says."""
SHORTEST_WAIT: Final = timedelta(seconds=0.2)
_MOST: Final = 1024 * 1024
"""Bytes of a cursor's file; a longer one is not ours."""
MOST_FAILED: Final = 10_000
"""So many events that failed are remembered, the newest."""
PAUSE_OF_BEGIN: Final = timedelta(seconds=3)
"""After a pull was begun, which costs more statements than a page."""
_Answer = TypeVar("_Answer", bound=BaseModel)
_OVER = {"pull_over", "other_ledger"}
_TELL_AGAIN: Final = 30.0
"""Seconds after which it is told again that nothing answers."""
_MOMENT: Final = TypeAdapter(AwareDatetime)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events of the other inbox: all, or those of a source and a type (`invoice.*`), since some time.

    Without a time what comes from now on, by the other inbox's clock.
    """

    since: datetime | None
    source: str | None = None
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Events as `GET /pulls/{pull}/events` gives them, and how many come behind them, at most."""

    events: list[dict[str, Any]]
    behind: int


class Pull(BaseModel):
    """A pull that has begun."""

    id: int = Field(ge=1)
    cursor: str = Field(min_length=1, max_length=16_384)
    has_bodies: bool
    oldest_at: AwareDatetime | None


class _Page(BaseModel):
    data: list[dict[str, Any]]
    next: str = Field(min_length=1, max_length=16_384)
    behind: int = Field(ge=0)
    wait: float = Field(ge=0)


class Progress(BaseModel):
    """How far a pull has come, as it is kept.

    `since` is from when on everything was taken that is before the cursor, and `seen_at` when the last event of that
    came. `listen` keeps besides which event of the page behind the cursor it has `sent` last, the ledger ids of those
    that `failed`, and its secrets by source.
    """

    cursor: str | None = None
    since: AwareDatetime | None = None
    seen_at: AwareDatetime | None = None
    sent: int = 0
    failed: list[int] = []
    secrets: dict[str, str] = Field(default={}, repr=False)


class CursorFile:
    """The progress of a pull, in a file for its owner alone (mode 0600).

    One process at a time follows by it; others may note beside it what became of an event.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.kept = Progress()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Follow alone, as long as the block lasts. Raises: `RemoteError` where another process does, as `read`."""
        with self._locked(".lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RemoteError(f"another process pulls by {self._path}; stop it first") from None
            self.read()
            yield

    def read(self) -> None:
        """Read what is kept. Raises: `RemoteError` where that is nothing of ours."""
        try:
            with self._path.open("rb") as file:
                self.kept = Progress.model_validate_json(file.read(_MOST))
        except FileNotFoundError:
            return
        except ValidationError:
            raise RemoteError(f"{self._path} can't be read; remove it to start over") from None

    def keep(self, **changes: object) -> None:
        """Change some of it; what is new is on the disk when this returns. Raises: OSError."""
        self._change(lambda _: changes)

    def note(self, event: int, *, has_failed: bool, is_next: bool = False) -> None:
        """Keep whether an event failed when it was sent, and, if it `is_next`, that all up to it were."""

        def noted(kept: Progress) -> Mapping[str, object]:
            failed = {*kept.failed, event} if has_failed else {*kept.failed} - {event}
            sent = max(kept.sent, event) if is_next else kept.sent
            return {"sent": sent, "failed": sorted(failed)[-MOST_FAILED:]}

        self._change(noted)

    def _change(self, change: Callable[[Progress], Mapping[str, object]]) -> None:
        with self._locked(".write") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.read()
            kept = self.kept.model_copy(update=dict(change(self.kept)))
            write_whole(self._path, kept.model_dump_json(exclude_defaults=True) + "\n")
            self.kept = kept

    def _locked(self, suffix: str) -> IO[str]:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._path.with_suffix(suffix).open("a")


class Puller:
    """Pulls from one inbox. `tell` gets a line where something is out of order; nothing of it ends the pull."""

    def __init__(self, client: Client, wanted: Wanted, file: CursorFile, tell: Callable[[str], None]) -> None:
        self._client = client
        self._wanted = wanted
        self._wanted_since = wanted.since or datetime.now(UTC)
        self._file = file
        self._tell = tell
        self._tries = 0
        self._told_at = 0.0
        self._has_answered = False

    def pages(self, ended: threading.Event, *, follows: bool) -> Iterator[Page]:
        """Yield page by page until `ended` is set, or, unless it `follows`, until there is no more.

        The cursor moves when the next page is asked for. Raises: `RemoteError` where trying again helps nothing.
        """
        pull: Pull | None = None
        while not ended.is_set():
            try:
                if pull is None:
                    pull = self.begin()
                    cursor = pull.cursor
                    self._file.keep(cursor=cursor, since=self._since)
                    ended.wait(min(PAUSE_OF_BEGIN, LONGEST_WAIT).total_seconds())
                page = self._asked(_Page, f"/pulls/{pull.id}/events", cursor=cursor)
            except Unreachable as error:
                self._note(error)
                ended.wait(pause(self._tries, error.wait).total_seconds())
                continue
            except Refused as error:
                if error.code == NO_INBOX and self._has_answered:  # a network that asks for a sign-in first
                    self._note(error)
                    ended.wait(pause(self._tries).total_seconds())
                    continue
                if error.code not in _OVER or pull is None:
                    raise
                pull = None
                continue
            self._has_answered = True
            if self._tries:
                self._tell(f"{self._client.url} answers again")
                self._tries = 0
            yield Page(page.data, page.behind)
            cursor = page.next
            self._file.keep(cursor=cursor, seen_at=_received_at(page) or self._file.kept.seen_at, sent=0)
            if not page.data and not page.behind and not follows:
                return
            wait = min(max(timedelta(seconds=page.wait), SHORTEST_WAIT), LONGEST_WAIT)
            ended.wait(wait.total_seconds())

    @property
    def _since(self) -> datetime:
        """From when on nothing is missing."""
        return min(self._wanted_since, self._file.kept.since or self._wanted_since)

    def begin(self) -> Pull:
        """Begin a pull where the last one ended, unless that began later than what is wanted now.

        Raises: `RemoteError`, also for a token that lets no bodies leave.
        """
        kept, since = self._file.kept, self._wanted_since
        goes_on = kept.cursor is not None and kept.since is not None and kept.since <= since
        asked = {"source": self._wanted.source, "type": self._wanted.type}
        try:
            where = {"cursor": kept.cursor} if goes_on else {"since": self._wanted.since and _utc(since)}
            pull = self._post(asked | where)
        except Refused as error:
            if error.code != "other_ledger" or not goes_on:
                raise
            since = min(since, kept.seen_at or kept.since or since)
            self._tell(f"{error}; it is pulled again, from {_utc(since)} on")
            self._file.keep(cursor=None, since=since, seen_at=None, sent=0, failed=[])  # ids of the other one
            pull = self._post(asked | {"since": _utc(since)})
            goes_on = False
        if not pull.has_bodies:
            raise RemoteError(
                f"the token of {self._client.url} lets no bodies leave; make one there with "
                "`hookonce tokens create NAME --scope read --scope bodies`, and `hookonce login` again"
            )
        wanted = (kept.seen_at or kept.since) if goes_on else self._wanted.since
        if pull.oldest_at is not None and wanted is not None and pull.oldest_at > wanted:
            self._tell(f"{self._client.url} has events from {_utc(pull.oldest_at)} on; none before is there")
        return pull

    def one(self, pull: Pull, event: int) -> dict[str, Any]:
        """Return one event again, as a page gives it. Raises: `RemoteError`."""
        return self._client.get(f"/pulls/{pull.id}/events/{event}")

    def _post(self, body: dict[str, Any]) -> Pull:
        given = {name: value for name, value in body.items() if value is not None}
        return self._read(Pull, self._client.post("/pulls", given, tries=1))

    def _asked(self, kind: type[_Page], path: str, **query: str) -> _Page:
        return self._read(kind, self._client.get(path, tries=1, **query))

    def _read(self, kind: type[_Answer], answer: dict[str, Any]) -> _Answer:
        try:
            return kind.model_validate(answer)
        except ValidationError:
            raise RemoteError(
                f"the server at {self._client.url} is no inbox that this version knows"
            ) from None

    def _note(self, error: RemoteError) -> None:
        """Tell of the first of several failures, and now and then that it goes on."""
        self._tries += 1
        now = time.monotonic()
        if self._tries == 1 or now - self._told_at >= _TELL_AGAIN:
            self._told_at = now
            self._tell(f"{error}; it is tried again until it answers")


def _received_at(page: _Page) -> datetime | None:
    """Return when the last event of a page came."""
    try:
        return _MOMENT.validate_python(page.data[-1]["received_at"])
    except (LookupError, ValidationError):
        return None


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
