"""The state machine: which states an event and its runs may be in, and which moves there are between them.

All SQL, commands and pages take the words from here, so a new state or a new move is one change that can be read. A
row of `runs` says how a run has ended; every other state follows from the rows of `queue` and `runs`, as the views
`event_states` and `run_states` have it. `tests/support/status_moves.py` lists the moves, and compares them with what a
ledger really does.

    event:  received -> running -> done | waiting | dead      run:  waiting -> running -> done | waiting | dead
            received -> ignored -> received                         dead | waiting -> discarded (by a person)
            held -> received (a release)                            done | dead | discarded -> waiting (a replay)
            dead | held | waiting | received -> discarded (by a person)
            dead -> done (read anew, or the rest discarded), waiting -> done (the rest discarded)
            done | dead | discarded -> waiting (a replay), discarded -> received

Beside its status, what is open may be *parked*: it waits for somebody, as long as a pause lasts, and no claim looks
at it. Parked is open: it keeps its status, its due time and its body, and counts as what it is.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final


class _Status(StrEnum):
    """A word; also in messages, which name it as the text that it is."""

    def __repr__(self) -> str:
        return repr(self.value)


class EventStatus(_Status):
    """The status of an event; with runs it follows from theirs: running, else waiting, dead, done, discarded."""

    RECEIVED = "received"
    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    DEAD = "dead"
    DISCARDED = "discarded"
    IGNORED = "ignored"
    HELD = "held"
    LOST = "lost"
    """There is nothing of it but that it came: an error, which `hookonce doctor` and the sweep look for."""


class RunStatus(_Status):
    """The status of a run, of one handler on one event."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"
    DISCARDED = "discarded"


class Waits(StrEnum):
    """Why something open is passed over by claims, the column `waits` of `queue`; NULL in whatever may be claimed.

    These have no owner; all words are in `receiver.ledger.reasons`. It waits while its handler is paused, or until a
    person releases it. A suspect may have been under way in a process that died, and is run with nothing beside it
    (docs/decisions/0020). A run of a batch waits for the handler that takes it with others; in a part of a batch that
    failed, the part stands behind the word (`receiver.ledger.runs.batches`).
    """

    HANDLER = "handler"
    SUSPECT = "suspect"
    BATCH = "batch"
    HELD = "held"


OPEN: Final = (EventStatus.RECEIVED, EventStatus.RUNNING, EventStatus.WAITING)
"""Events that are under way, parked ones among them: these, and no others, have a `due_at`."""
ENDED: Final = (EventStatus.DONE, EventStatus.DEAD, EventStatus.DISCARDED, EventStatus.IGNORED)
"""Events that nothing happens to any more by itself; retention may take them."""
OPEN_RUNS: Final = (RunStatus.WAITING, RunStatus.RUNNING)
"""Runs that are under way: these have a `due_at`; a waiting one may be parked."""
WHY_UNREADABLE: Final = f"""(SELECT f.error FROM hookonce.failures f JOIN hookonce.runs r USING (event, handler)
 WHERE f.event = e.id AND f.handler = '' AND r.status = '{RunStatus.DEAD}' LIMIT 1)"""  # noqa: S608  a constant
"""SQL: why the event `e` could not be read; NULL of one that was."""


def one_of(column: str, statuses: Iterable[EventStatus | RunStatus]) -> str:
    """Return the SQL condition that a column of ours holds one of these statuses, in their order."""
    literals = ", ".join(f"'{status}'" for status in statuses)
    return f"{column} IN ({literals})"
