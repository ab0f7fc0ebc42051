"""Why a run that is open is not run yet: `REASONS` is the one table of it, from which all take it; and when it is due.

A run that claims pass over has a word in `queue.waits`; a run without one waits for its time, for others of its batch
or for a worker. Claims, sweeps, lists, pages, commands, metrics and the API have no reason of their own: a new pause
is an entry of the table, and may be given, ended, seen and counted by all of them.

A pause is a row of `pauses`, so it is instant whatever it stops. One of rows is told by what a row of the queue holds:
claims pass such a row over, and sweeps park it (`receiver.ledger.runs.parking`). One of handlers is told by the plan of
a claim (`jobs.plan`), since workers alone know which handlers take an event that nobody has met. Limits and suspects
are found by `runs.limit_gate` and `runs.takeover`. Nothing here is asked of the ledger; it is words and conditions.
"""

import re
from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hookonce.receiver.ledger.states import RunStatus, Waits

PUT_OFF: Final = "put off"
"""What `queue.schedule` begins with in a run that asked for more time."""


class WaitsFor(StrEnum):
    """The reason that a run waits, as users read it; a run that is due waits for a worker."""

    LIMIT = "limit"
    RATE = "rate"
    BREAKER = "breaker"
    PAUSE = "pause"
    SUSPECT = "suspect"
    BATCH = "batch"
    BACKOFF = "backoff"
    DELAY = "delay"
    EVENT = "event"
    WORKER = "worker"

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True)
class Pause:
    """A thing that a person may pause: its kind in `pauses`, and the pattern of its names (group `source`, if any).

    `matches` is SQL on a row of the queue, true of what the pause `{name}` keeps waiting; of handlers it is asked of
    rows only that have one. `parameters` of statements stand beside it, so it holds no per cent sign.
    """

    kind: str
    noun: str
    names: re.Pattern[str]
    matches: str
    by_plan: bool = False

    def may_be(self, name: str, sources: Container[str]) -> bool:
        """Return whether there can be such a pause: what is of a source is of one that is configured."""
        return self.by_plan or self.source_of(name) in sources

    def source_of(self, name: str) -> str | None:
        """Return the source that a name begins with, which must be one; None if it names none."""
        found = self.names.fullmatch(name)
        return found.groupdict().get("source") if found else None

    def of(self, name: str) -> str:
        """Return the condition with an SQL expression in the place of the name."""
        return self.matches.replace("{name}", name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a run waits: what the queue says, what users read, and until when that is.

    `word` is in `queue.waits`; whose it is follows behind a colon where it `has_owner`, and what part it is of
    where it `has_parts` and is of one. `condition` is SQL on a waiting
    row `r` of `run_states`, true of what has the word and waits for this. `words` are what every face shows.
    """

    waits_for: WaitsFor
    until: str
    words: str
    word: str | None = None
    has_owner: bool = False
    has_parts: bool = False
    condition: str = "true"
    pause: Pause | None = None

    @property
    def prefix(self) -> str:
        """The beginning of `queue.waits`."""
        return f"{self.word}:" if self.has_owner else self.word or ""

    def parked_by(self, waits: str) -> str:
        """Return the SQL condition that a column holds this reason's word."""
        if self.has_owner:
            return f"starts_with({waits}, '{self.prefix}')"
        if self.has_parts:
            return f"split_part({waits}, ':', 1) = '{self.word}'"
        return f"{waits} = '{self.word}'" if self.word else f"{waits} IS NULL"

    def found_by(self, waits: str) -> str:
        """Return the condition that a column holds this reason's word, as an index finds it."""
        # Words are compared by bytes, and after a colon comes a semicolon.
        return (
            f"{waits} >= '{self.word}{':' * self.has_owner}' AND {waits} < '{self.word};'"
            if self.has_owner or self.has_parts
            else self.parked_by(waits)
        )


HANDLER: Final = Pause("handler", "a handler", re.compile(r".+", re.DOTALL), "handler = {name}", by_plan=True)
SOURCE: Final = Pause("source", "a source", re.compile(r"(?P<source>[^:]+)"), "source = {name}")
TYPE: Final = Pause(
    "type",
    "a type of events at a source (`stripe:invoice.*`)",
    re.compile(r"(?P<source>[^:]+):(?P<type>.+)", re.DOTALL),
    # As LIKE has it: `*` stands for any text, and nothing else for anything but itself.
    r"""source = split_part({name}::text, ':', 1) AND type LIKE replace(replace(replace(replace(
        substr({name}::text, strpos({name}::text, ':') + 1), '\', '\\'), '_', '\_'), chr(37), '\' || chr(37)), '*',
        chr(37))""",
)

LIMIT: Final = Reason(
    waits_for=WaitsFor.LIMIT,
    until="a place of its handler's limit is free",
    word="limit",
    has_owner=True,
    words="its handler's limit is full",
)

BATCH: Final = Reason(
    waits_for=WaitsFor.BATCH,
    until="others of its batch have come, or its part of one is tried by itself",
    word=Waits.BATCH,
    has_parts=True,
    words="others of its batch are to come",
)

REASONS: Final = (
    LIMIT,
    Reason(
        waits_for=WaitsFor.WORKER,
        until=BATCH.until,
        word=Waits.BATCH,
        condition="""EXISTS (SELECT FROM hookonce.handlers h WHERE h.handler = r.handler
            AND r.due_at <= now() - (h.models->'limits'->>'wait_seconds')::float * interval '1 second')""",
        words="a worker is to take its batch",
    ),
    BATCH,
    Reason(
        waits_for=WaitsFor.SUSPECT,
        until="a worker runs it alone",
        word=Waits.SUSPECT,
        words="its process died, and it is run by itself",
    ),
    Reason(
        waits_for=WaitsFor.PAUSE,
        until="that source is resumed",
        word="source",
        has_owner=True,
        pause=SOURCE,
        words="its source is paused",
    ),
    Reason(
        waits_for=WaitsFor.PAUSE,
        until="that type is resumed at that source",
        word="type",
        has_owner=True,
        pause=TYPE,
        words="its type is paused at its source",
    ),
    Reason(
        waits_for=WaitsFor.BREAKER,
        until="its handler is resumed, by a person or by its breaker",
        word=Waits.HANDLER,
        condition="EXISTS (SELECT FROM hookonce.breakers b WHERE b.handler = r.handler AND b.opened_at IS NOT NULL)",
        words="its handler failed too often, and its circuit breaker is open",
    ),
    Reason(
        waits_for=WaitsFor.PAUSE,
        until="its handler is resumed, by a person or by its breaker",
        word=Waits.HANDLER,
        pause=HANDLER,
        words="its handler is paused",
    ),
    Reason(
        waits_for=WaitsFor.PAUSE,
        until="a person releases its event",
        word=Waits.HELD,
        words="its event is held",
    ),
    Reason(
        waits_for=WaitsFor.WORKER,
        until="a worker claims it",
        condition="r.due_at <= now()",
        words="a worker is to claim it",
    ),
    Reason(
        waits_for=WaitsFor.RATE,
        until="the time has come that its rate gives it",
        condition="r.slot_at IS NOT NULL",
        words="its handler's rate is used up",
    ),
    Reason(
        waits_for=WaitsFor.EVENT,
        until="the event has come that its handler waits for, or the time of the wait is over",
        condition=f"""starts_with(r.schedule, '{PUT_OFF}') AND EXISTS (SELECT FROM hookonce.waits w
            WHERE (w.event, w.handler, w.cycle) = (r.event, r.handler, r.cycle) AND w.ended_at IS NULL)""",
        words="its handler waits for another event (event.wait)",
    ),
    Reason(
        waits_for=WaitsFor.BACKOFF,
        until="its next attempt is due",
        condition="""r.cut_offs <> 0 OR EXISTS (SELECT FROM hookonce.failures f
            WHERE (f.event, f.handler, f.cycle) = (r.event, r.handler, r.cycle) AND f.attempt >= r.attempts)""",
        words="it failed, and is tried again later",
    ),
    Reason(
        waits_for=WaitsFor.DELAY,
        until="the time has come that its handler asked for",
        condition=f"starts_with(r.schedule, '{PUT_OFF}')",
        words="its handler asked for more time (RetryLater)",
    ),
    Reason(
        waits_for=WaitsFor.WORKER,
        until="a worker knows its handler",
        words="a worker is to claim it",
    ),
)
"""In the order in which they are asked for: the first that holds of a run is why it waits."""

PAUSES: Final = {each.pause.kind: each.pause for each in REASONS if each.pause}
"""What a person may pause, by its kind."""
OF_ROWS: Final = tuple(pause for pause in PAUSES.values() if not pause.by_plan)
"""The pauses that a row of the queue is told by."""

_ROW_KINDS = ", ".join(f"'{pause.kind}'" for pause in OF_ROWS)
IS_OF_ROWS: Final = f"kind IN ({_ROW_KINDS})"
"""Of a row of `pauses`."""
MATCHES: Final = " OR ".join(f"(kind = '{pause.kind}' AND {pause.of('name')})" for pause in OF_ROWS)
"""Of a row of `pauses` beside one of the queue: this keeps that waiting."""
# Looked up row by row, and not at all where nothing is paused: a join would have the planner leave the due index.
IS_NOT_PAUSED: Final = f"""(NOT (SELECT EXISTS (SELECT FROM hookonce.pauses WHERE {IS_OF_ROWS}))
     OR NOT EXISTS (SELECT FROM hookonce.pauses WHERE {MATCHES}))"""  # noqa: S608  constants
"""Of a row of the queue, without an alias: nothing that it is told by is paused."""

IS_DUE: Final = "due_at <= now() AND waits IS NULL AND token IS NULL"
"""Of a row of the queue, without an alias: its time has come, nothing keeps it waiting and no worker runs it.

What its row is told by may have been paused just now.
"""
MAY_BE_CLAIMED: Final = f"{IS_DUE} AND {IS_NOT_PAUSED}"
"""Of the same row: a worker may take it."""
IS_DUE_SINCE: Final = f"{IS_DUE} AND due_at >= coalesce(%(since)s::timestamptz, '-infinity')"
"""Of the same row: it is due, and has not been for longer than since a time that is given, if one is."""


def word_of(kind: str, name: str) -> str:
    """Return what `queue.waits` holds in what a pause keeps waiting."""
    reason = next(each for each in REASONS if each.pause and each.pause.kind == kind)
    return reason.prefix + name if reason.has_owner else reason.prefix


def why(parked: str, waits_for: Collection[WaitsFor | None] = ()) -> Reason:
    """Return the reason that something is parked for; `waits_for`, of its runs, tells those apart that share a word."""
    found = [each for each in REASONS if each.word and parked.partition(":")[0] == each.word]
    return next((each for each in found if each.waits_for in waits_for), found[-1])


def of_waits_for(waits_for: WaitsFor) -> Reason:
    """Return the last reason that users read as a word."""
    return next(each for each in reversed(REASONS) if each.waits_for == waits_for)


def described(*, of_run: bool = False) -> str:
    """Return the words that something may be parked as, of a run or of an event, each with its end."""
    shown = {
        f"`{each.word}:…`" if each.has_owner and not each.pause else f"`{each.word}`": each.until
        for each in REASONS
        if each.word and each.word != Waits.HELD and not (of_run and each.pause in OF_ROWS)
    }
    return "; ".join(f"{word}, until {until}" for word, until in shown.items())


def nouns() -> str:
    """Return what may be paused."""
    *others, last = (pause.noun for pause in PAUSES.values())
    return f"{', '.join(others)} or {last}"


def _of_rows() -> Iterator[Reason]:
    return (each for each in REASONS if each.pause in OF_ROWS)


def _case(branches: Iterable[tuple[str, str]], otherwise: str = "NULL") -> str:
    whens = "\n".join(f"WHEN {condition} THEN {value}" for condition, value in branches)
    return f"CASE {whens} ELSE {otherwise} END"


PARKED: Final = _case(
    [
        *((each.parked_by("waits"), f"'{each.word}'") for each in (*_of_rows(), BATCH)),
        (f"waits <> '{Waits.HELD}'", "waits"),
    ]
)
"""Of an event: why it is passed over, in a word; of a pause of rows without its name."""
PARKED_RUN: Final = _case(
    [
        (BATCH.parked_by("r.waits"), f"'{BATCH.word}'"),
        (" AND ".join(f"NOT {each.parked_by('r.waits')}" for each in _of_rows()), "r.waits"),
    ]
)
"""Of a row `r` of `run_states`: why it is passed over, unless all runs of its event are."""
WAITS_FOR: Final = _case(
    [
        (f"r.status <> '{RunStatus.WAITING}'", "NULL"),
        *((f"{each.parked_by('r.waits')} AND {each.condition}", f"'{each.waits_for}'") for each in REASONS),
    ],
    f"'{WaitsFor.PAUSE}'",
)
"""Of a row `r` of `run_states`: what it waits for; NULL unless it waits."""
