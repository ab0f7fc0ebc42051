"""Clients that use their keys wrongly: one key for all, or a new one on each retry.

Kept by each process for itself, and bounded: what is forgotten is a warning that comes later.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from hookonce.receiver.logs import limited

log = limited(__name__)

WITHIN = timedelta(minutes=10)
SAME_KEY = 3
"""Different requests under one key that make a warning."""
SAME_REQUEST = 5
"""Keys for one request that make a warning."""
REMEMBERED = 10_000

Whose = tuple[str, ...]
"""Command and client, and whoever else keys are told apart by."""


@dataclass(slots=True)
class _Seen:
    since: float
    what: set[bytes | str] = field(default_factory=set)


class Conduct:
    """The conduct of the clients of one process lately."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[tuple[Whose, str | bytes], _Seen] = OrderedDict()

    def asked(self, whose: Whose, digest: str, fingerprint: bytes) -> None:
        """Note a new command: the same request under other keys is a retry that forgot its key."""
        if self._note((whose, fingerprint), digest) == SAME_REQUEST:
            log.warning(
                "a client asks for the same under a new key each time; a retry must keep its key",
                extra={"source": whose[0], "client": whose[1]},
            )

    def reused(self, whose: Whose, digest: str, fingerprint: bytes) -> None:
        """Note another request under a known key."""
        if self._note((whose, digest), fingerprint) == SAME_KEY:
            log.warning(
                "a client asks for different things under one key; each needs a key of its own",
                extra={"source": whose[0], "client": whose[1]},
            )

    def _note(self, about: tuple[Whose, str | bytes], what: bytes | str) -> int:
        """Return how many there are by now; 0 if this one is not new."""
        now = self._clock()
        with self._lock:
            seen = self._seen.get(about)
            if seen is None or now - seen.since > WITHIN.total_seconds():
                seen = self._seen[about] = _Seen(now)
            self._seen.move_to_end(about)
            if len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
            if what in seen.what or len(seen.what) >= max(SAME_KEY, SAME_REQUEST):
                return 0
            seen.what.add(what)
            return len(seen.what)
