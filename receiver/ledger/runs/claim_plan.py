"""Decides what to do with each run of the events a claim has locked: lease it, park it, put it off, bury it.

No SQL here: rows in, lists out.
"""

import uuid
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple, Protocol

from hookonce.receiver.ledger.runs import claimed
from hookonce.receiver.ledger.runs.batch_size import BatchSize
from hookonce.receiver.ledger.runs.claimed import ClaimedEvent, ClaimedRun, ExistingRun
from hookonce.receiver.ledger.runs.run_limits import RunLimit
from hookonce.receiver.ledger.states import OPEN_RUNS, PARKED_BY_LIMIT, Parked, RunStatus


class Plan(Protocol):
    """What claiming wants to know of a handler; `is_long`: its leases are renewed while it works."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def attempts(self) -> int: ...  # noqa: D102
    @property
    def timeout(self) -> timedelta: ...  # noqa: D102
    @property
    def is_long(self) -> bool: ...  # noqa: D102
    @property
    def limit(self) -> RunLimit | None: ...  # noqa: D102
    @property
    def batch(self) -> BatchSize | None: ...  # noqa: D102


class Planner(Protocol):
    """The handlers of one worker; no method may raise."""

    def matching(self, source: str, provider: str, type: str) -> Sequence[Plan]:  # noqa: A002
        """Return the handlers that take such an event."""
        ...

    def named(self, name: str) -> Plan | None:
        """Return a handler by name, or None if this worker does not know it."""
        ...

    def is_slow(self, source: str, provider: str, type: str) -> bool:  # noqa: A002
        """Return whether a handler that takes such an event took long lately."""
        ...


class PausedHandlers(NamedTuple):
    """Handlers that are paused; `trials`: (event, handler) that may run all the same."""

    names: AbstractSet[str] = frozenset()
    trials: AbstractSet[tuple[int, str]] = frozenset()


class LimitedRun(NamedTuple):
    """A run that is to be leased if its handler's limit allows.

    `slot_at`: the time that a rate gave it before; `schedule`: which rate (`run_limits.Given.name`).
    """

    run: ClaimedRun
    limit: RunLimit
    slot_at: datetime | None
    schedule: str | None

    @property
    def key(self) -> tuple[str, str]:
        """The handler, and whose share of its limit this uses."""
        return (self.run.handler, self.limit.key(self.run.event))


class BatchableRun(NamedTuple):
    """A due run of a handler that takes batches; the first try of any of them may be beside others."""

    event: ClaimedEvent
    handler: str
    cycle: int
    is_new: bool
    is_sole: bool


class HeldRun(NamedTuple):
    """A run that a limit holds back: for how long, or parked until somebody takes it up.

    `slot`: how far off the time is that its rate has given it, if it has; less than nothing where it is past.
    """

    event: int
    handler: str
    delay: timedelta = timedelta(0)
    parked: str | None = None
    slot: timedelta | None = None


SUSPECT_PAUSE = timedelta(seconds=5)
"""How long a suspect waits whose limit is full; others are parked for that, but it must stay what it is."""


class ClaimPlan:
    """Sorts the runs of locked events.

    `leased`: to be run, in order. `parked`: (event, handler) whose handler is paused, whether or not this worker
    knows it. `put_off`: (event, handler) this worker does not know. `lost`: (event, handler, dead) started and never
    ended; dead if no attempt is left. `ignored`: events nobody takes. `limited`: those leased whose handlers have
    limits; `held`: what these hold back; `schedules`: by what they give times (`run_limits.Given.name`). `suspects`:
    (event, handler) lost by a process that died, to be run alone; `refunds`: those that get their attempt back, since
    others ran beside them. `batchable`: what is left to `receiver.ledger.runs.batch_claims`; events that have nothing
    else are not among `events`.

    `spent`: handlers of which a run has used up the attempts that this worker gives; it is buried unless `announced`
    says that others give more.

    `beside`: what is leased runs beside others, so no run that was lost is. `only_suspects`: nothing but a suspect is,
    and one of each event. `is_alone`: nothing is left to a batch, nor to anybody else. `announced`: the largest number
    of attempts that a worker gives, by handler, as far as it was asked for.
    """

    def __init__(  # noqa: PLR0913  the last four by keyword
        self,
        events: Sequence[ClaimedEvent],
        planner: Planner,
        existing: Mapping[int, Sequence[ExistingRun]],
        paused: PausedHandlers,
        token: uuid.UUID,
        *,
        beside: bool = False,
        only_suspects: bool = False,
        is_alone: bool = False,
        announced: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.leased: list[ClaimedRun] = []
        self.parked: list[tuple[int, str]] = []
        self.put_off: list[tuple[int, str]] = []
        self.lost: list[tuple[int, str, bool]] = []
        self.ignored: list[int] = []
        self.limited: list[LimitedRun] = []
        self.held: list[HeldRun] = []
        self.schedules: dict[tuple[int, str], str] = {}
        self.suspects: list[tuple[int, str]] = []
        self.refunds: set[tuple[int, str]] = set()
        self.spent: set[str] = set()
        self.beside = beside
        self._only_suspects = only_suspects
        self.batchable: list[BatchableRun] = []
        self._is_alone = is_alone
        self._announced = announced
        self._planner = planner
        self._paused = paused
        self._token = token
        for event in events:
            runs = existing[event.id]
            for run in runs:
                self._sort_existing(event, run, is_sole=len(runs) == 1)
            if not runs:
                self._sort_new(event)
        self.events = self._without_batches(events)

    @property
    def parked_whole(self) -> list[tuple[int, str]]:
        """The parked runs of events that a claim can do nothing else with."""
        others = {run.event.id for run in self.leased}
        others |= {event for event, _ in self.put_off} | {event for event, _, _ in self.lost}
        others |= {run.event for run in self.held} | {event for event, _ in self.suspects}
        others |= {run.event.id for run in self.batchable}
        return [run for run in self.parked if run[0] not in others]

    def _sort_new(self, event: ClaimedEvent) -> None:
        plans = self._planner.matching(event.source, event.provider, event.type)
        if not plans:
            self.ignored.append(event.id)
        for plan in plans:
            run = ExistingRun(event.id, plan.name)
            if not self._leave_to_batch(event, plan, run, is_new=True, is_sole=len(plans) == 1):
                self._lease(event, plan, run, is_sole=len(plans) == 1)

    def _sort_existing(self, event: ClaimedEvent, run: ExistingRun, *, is_sole: bool) -> None:
        is_paused = self._is_paused(event, run.handler)
        is_suspect = run.parked == Parked.SUSPECT
        waits = run.parked and (is_paused or run.parked.startswith(PARKED_BY_LIMIT))
        is_ours = self._is_alone or is_suspect == self._only_suspects
        if run.status not in OPEN_RUNS or not run.is_due or waits or not is_ours:
            return
        is_lost = run.status == RunStatus.RUNNING
        is_beside = is_lost and run.beside
        if is_beside:
            self.refunds.add((event.id, run.handler))
            run = run._replace(attempts=run.attempts - 1)
        plan = self._planner.named(run.handler)
        may_kill = self._is_to_be_suspected(run, is_here=plan is not None and not is_paused)
        if plan is None:
            others = self.parked if is_paused else self.put_off
            (self.suspects if may_kill else others).append((event.id, run.handler))
            return
        if not is_beside and self._leave_to_batch(event, plan, run, is_new=False, is_sole=is_sole):
            return
        is_spent = self._is_spent(plan, run)
        if is_spent or (is_lost and not run.beside):
            self.lost.append((event.id, run.handler, is_spent))
        if may_kill and not is_spent:
            self.suspects.append((event.id, run.handler))
        elif not is_spent:
            self._lease(event, plan, run, is_sole=is_sole)

    def _is_spent(self, plan: Plan, run: ExistingRun) -> bool:
        """Return whether a run has used up its attempts, by our number and by all that are announced."""
        if run.attempts < plan.attempts:
            return False
        self.spent.add(plan.name)
        return run.attempts >= self._announced.get(plan.name, 0)

    def _is_to_be_suspected(self, run: ExistingRun, *, is_here: bool) -> bool:
        """Return whether a run that was lost, or is a suspect, is to be run by itself, later or by somebody else.

        `is_here`: it may run here and now. A worker that runs one at a time does so, and may start as any what was lost
        alone and charged. Of what was lost beside others, and of suspects, only what starts at once is leased: what has
        to wait may be let go, and would be an ordinary run.
        """
        starts_at_once = is_here and not self.leased
        if self._only_suspects:
            return not starts_at_once
        is_of_a_batch = not (run.beside or run.attempts)  # which is halved
        if run.status != RunStatus.RUNNING or self._is_alone or is_of_a_batch:
            return False
        return self.beside or (run.beside and not starts_at_once)

    def _is_paused(self, event: ClaimedEvent, handler: str) -> bool:
        return handler in self._paused.names and (event.id, handler) not in self._paused.trials

    def _leave_to_batch(
        self, event: ClaimedEvent, plan: Plan, run: ExistingRun, *, is_new: bool, is_sole: bool
    ) -> bool:
        """Leave a run to a batch if it may be beside others: not if it has failed alone, or is tried for a breaker."""
        is_trial = (event.id, plan.name) in self._paused.trials
        if plan.batch is None or run.attempts or is_trial or self._is_alone or self._only_suspects:
            return False
        if self._is_paused(event, plan.name):
            return False
        self.batchable.append(BatchableRun(event, plan.name, run.cycle, is_new, is_sole))
        return True

    def _without_batches(self, events: Sequence[ClaimedEvent]) -> Sequence[ClaimedEvent]:
        """Return the events that there is something else to do with."""
        if not self.batchable:
            return events
        others = {run.event.id for run in self.leased} | {event for event, _ in self.parked}
        others |= {event for event, _ in self.put_off} | {event for event, _, _ in self.lost}
        others |= {event for event, _ in self.suspects} | {event for event, _ in self.refunds}
        alone = {run.event.id for run in self.batchable} - others
        return [event for event in events if event.id not in alone]

    def _lease(self, event: ClaimedEvent, plan: Plan, run: ExistingRun, *, is_sole: bool) -> None:
        if self._is_paused(event, plan.name):
            self.parked.append((event.id, plan.name))
            return
        lease = claimed.LONG_LEASE if plan.is_long else plan.timeout + claimed.LEASE_MARGIN
        leased = ClaimedRun(
            event,
            plan.name,
            run.attempts + 1,
            run.cycle,
            self._token,
            lease,
            is_sole,
            self.beside,
            is_trial=(event.id, plan.name) in self._paused.trials,
        )
        self.leased.append(leased)
        if plan.limit is not None:
            self.limited.append(LimitedRun(leased, plan.limit, run.slot_at, run.schedule))

    def put_off_run(self, run: ClaimedRun, delay: timedelta) -> None:
        """Take a run out of those to be leased until its rate's time for it."""
        self._hold(run, HeldRun(run.event.id, run.handler, delay, slot=delay))

    def park_run(self, run: ClaimedRun, parked: str, slot: timedelta | None) -> None:
        """Take a run out of those to be leased until there is a place for it; `slot` is kept for it."""
        self._hold(run, HeldRun(run.event.id, run.handler, parked=parked, slot=slot))

    def _hold(self, run: ClaimedRun, held: HeldRun) -> None:
        self.leased.remove(run)
        if self._only_suspects or (run.event.id, run.handler) in self.refunds:
            delay = held.delay if held.parked is None else SUSPECT_PAUSE
            held = held._replace(delay=delay, parked=Parked.SUSPECT)
        self.held.append(held)
