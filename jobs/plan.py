"""Decides what becomes of each due run: leased, made to wait and why, left to others, ignored. No SQL.

A run that its handler takes in batches is made to wait for its batch, and is leased when it is read with that. A run
that failed alone is never put beside others again, nor is a suspect, or one that is tried for a breaker.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from hookonce.jobs.handlers import Handler, Registry
from hookonce.receiver.ledger.runs.claimed import QueuedRun
from hookonce.receiver.ledger.runs.decisions import ClaimContext, Decision, PlannedRun
from hookonce.receiver.ledger.states import Waits

UNKNOWN_HANDLER_PAUSE = timedelta(seconds=30)
"""How long a run waits whose handler this worker does not know."""


class Room(Protocol):
    """The runs that a worker can lease."""

    @property
    def slots(self) -> int:
        """How many of them may be under way at once."""
        ...

    def lanes(self, handlers: Sequence[str]) -> Sequence[int | None]:
        """Return in which lane each of these runs is to be leased, in their order; None: it is left for others."""
        ...


class _Everything:
    """Room for all there is."""

    slots = 1

    def lanes(self, handlers: Sequence[str]) -> Sequence[int | None]:
        return [0] * len(handlers)


EVERYTHING = _Everything()


class Plan:
    """The plan of one claim, as `decisions.Decide` asks for it."""

    def __init__(self, handlers: Registry, room: Room = EVERYTHING, *, batch: str | None = None) -> None:
        """Decide on what is due, or on what may be in a `batch` of a handler: all else is left then."""
        self._handlers = handlers
        self._batch = batch
        self._room = room

    @property
    def slots(self) -> int:
        """How many of what is leased may be under way at once, all having been decided."""
        return self._room.slots

    def __call__(self, rows: Sequence[QueuedRun], paused: ClaimContext) -> Sequence[PlannedRun]:
        """Decide on each run of due rows, in their order."""
        planned = [self._decided(row, *run, paused) for row in rows for run in self._runs(row)]
        leased = [number for number, each in enumerate(planned) if each.decision is Decision.LEASE]
        lanes = self._room.lanes([planned[number].handler for number in leased])
        for number, lane in zip(leased, lanes, strict=True):
            if lane is None:
                planned[number] = planned[number]._replace(decision=Decision.LEAVE)
            elif lane:
                planned[number] = planned[number]._replace(lane=lane)
        return planned

    def _runs(self, row: QueuedRun) -> Sequence[tuple[int, str, Handler | None]]:
        """Return the runs of a row: its own, or one for each handler that takes an event which is met first."""
        if row.handler is not None:
            return [(row.n, row.handler, self._handlers.named(row.handler))]
        event = row.event
        takers = self._handlers.matching(event.source, event.provider, event.type)
        return [(row.n + number, each.name, each) for number, each in enumerate(takers)] or [
            (row.n, "", None)
        ]

    def _decided(
        self, row: QueuedRun, n: int, name: str, handler: Handler | None, paused: ClaimContext
    ) -> PlannedRun:
        """Decide on one run, row `n` of its event, of the handler that has this name."""
        is_trial = (row.event.id, name) in paused.trials
        decision, waits, delay = Decision.LEASE, None, None
        if not name:
            decision = Decision.IGNORE
        elif name in paused.handlers and not is_trial:
            decision, waits = Decision.WAIT, Waits.HANDLER
        elif self._batch is not None:
            is_beside = row.waits or not (row.attempts or is_trial)
            decision = Decision.LEASE if name == self._batch and is_beside else Decision.LEAVE
        elif handler is None:
            decision, delay = Decision.WAIT, UNKNOWN_HANDLER_PAUSE
        elif handler.batch is not None and not (row.attempts or is_trial or row.waits):
            decision, waits = Decision.WAIT, Waits.BATCH
        limit = handler.limit if handler is not None and decision is Decision.LEASE else None
        return PlannedRun(row, n, name, decision, 0, limit, is_trial, waits, delay)
