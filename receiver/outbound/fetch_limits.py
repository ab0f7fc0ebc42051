"""Limits on fetched documents: what is remembered of those that senders name, and how many a source may fetch.

There are two `Books`, for names that have proven genuine and for all others: see `key_fetcher`. What stands in the one
takes no room and no time in the other.
"""

import threading
from collections import OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

MAX_DOCUMENTS: Final = 128
MAX_BACKOFFS: Final = 512
MAX_BACKOFF: Final = timedelta(minutes=1)
MAX_CONCURRENT_FETCHES: Final = 4
MAX_FETCHES_PER_MINUTE: Final = 20
MAX_WANTED_NAMES: Final = 1024
WANTED_TTL: Final = timedelta(minutes=1)
TURN_INTERVAL: Final = timedelta(seconds=6)
"""How often the most wanted name is fetched, beside those that came first: 30 a minute in all."""
_MINUTE: Final = timedelta(minutes=1)


@dataclass(slots=True)
class Document:
    """A document that was fetched, and when."""

    content: bytes
    fetched: float


@dataclass(slots=True)
class Backoff:
    """After failures: how many in a row, and until when nothing is tried."""

    failures: int = 0
    until: float = 0.0


@dataclass(slots=True)
class Fetch:
    """A fetch under way."""

    done: threading.Event = field(default_factory=threading.Event)
    content: bytes | None = None
    why: str = "the server does not answer"


class WantedNames:
    """Counts how often names are asked for, in bounded space: what is often asked for keeps a count (Misra, Gries)."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[int, float]] = {}  # how often, and when last

    def ask(self, name: str, now: float) -> None:
        """Count; where there is no room, whatever is known loses one."""
        if name in self._asked or len(self._asked) < MAX_WANTED_NAMES:
            self._asked[name] = (self._asked.get(name, (0, now))[0] + 1, now)
        else:
            self._asked = {each: (count - 1, at) for each, (count, at) in self._asked.items() if count > 1}

    def is_foremost(self, name: str, now: float) -> bool:
        """Whether nothing that is still asked for was asked for more often."""
        count, _ = self._asked.get(name, (0, now))
        still = now - WANTED_TTL.total_seconds()
        return count > 0 and all(other <= count for other, at in self._asked.values() if at >= still)

    def forget(self, name: str) -> None:
        """Take the name of a fetch out."""
        self._asked.pop(name, None)


@dataclass(slots=True)
class FetchBudget:
    """The fetches of one source, for names of one kind."""

    fetches: dict[str, Fetch] = field(default_factory=dict)
    starts: deque[float] = field(default_factory=deque)
    wanted: WantedNames = field(default_factory=WantedNames)
    last_turn: float = float("-inf")

    def is_spent(self, now: float) -> bool:
        """Whether there are as many fetches as may be, at once or within a minute."""
        while self.starts and now - self.starts[0] >= _MINUTE.total_seconds():
            self.starts.popleft()
        return len(self.fetches) >= MAX_CONCURRENT_FETCHES or len(self.starts) >= MAX_FETCHES_PER_MINUTE

    def takes_turn(self, name: str, now: float) -> bool:
        """Take the turn of the most wanted name, if that is this one and it is time."""
        is_time = now - self.last_turn >= TURN_INTERVAL.total_seconds()
        if not is_time or len(self.fetches) > MAX_CONCURRENT_FETCHES:
            return False
        if not self.wanted.is_foremost(name, now):
            return False
        self.last_turn = now
        return True


@dataclass(slots=True)
class Books:
    """The names of one kind that are known: documents, hosts and names that fail, and each source's fetches."""

    documents: OrderedDict[str, Document] = field(default_factory=OrderedDict)
    backoffs: OrderedDict[str, Backoff] = field(default_factory=OrderedDict)
    budgets: defaultdict[str, FetchBudget] = field(default_factory=lambda: defaultdict(FetchBudget))

    def keep(self, name: str, document: Document) -> None:
        """Keep a document, as the one that was used last."""
        self.documents[name] = document
        self.documents.move_to_end(name)
        while len(self.documents) > MAX_DOCUMENTS:
            self.documents.popitem(last=False)

    def is_left_alone(self, key: str, now: float) -> bool:
        """Whether a host or name failed so lately that it is not asked."""
        backoff = self.backoffs.get(key)
        return backoff is not None and backoff.until > now

    def record_failure(self, key: str, now: float) -> None:
        """Leave a host or name alone, each time for longer."""
        backoff = self.backoffs.setdefault(key, Backoff())
        backoff.failures += 1
        backoff.until = now + min(2.0 ** min(backoff.failures, 10), MAX_BACKOFF.total_seconds())
        self.backoffs.move_to_end(key)
        while len(self.backoffs) > MAX_BACKOFFS:
            self.backoffs.popitem(last=False)
