"""Decides what to do with each run of the events a claim has locked: lease it, put it off, bury it.

No SQL here: rows in, lists out.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol


class Plan(Protocol):
    """What claiming wants to know of a handler: its name, its attempts and how long one may take."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def attempts(self) -> int: ...  # noqa: D102
    @property
    def timeout(self) -> timedelta: ...  # noqa: D102


class Planner(Protocol):
    """The handlers of one worker; no method may raise."""

    def matching(self, source: str, provider: str, type: str) -> Sequence[Plan]:  # noqa: A002
        """Give the handlers that take such an event."""
        ...

    def named(self, name: str) -> Plan | None:
        """Give a handler by name, or None if this worker does not know it."""
        ...

    def is_slow(self, source: str, provider: str, type: str) -> bool:  # noqa: A002
        """Tell whether a handler that takes such an event took long lately."""
        ...


@dataclass(frozen=True, slots=True)
class ClaimedEvent:
    """An event under our lease, as the ledger holds it.

    `headers` and `url` are None where the body was dropped; `body` also where it is heavy (see `load_body`).
    A body is sealed with the key `key_id`, unless that is None.
    """

    id: int
    source: str
    provider: str
    event_id: str
    type: str
    account: str | None
    received_at: datetime
    occurred_at: datetime | None
    repeat_of: int | None
    url: str | None
    headers: dict[str, str] | None
    body: bytes | None
    is_element: bool
    fingerprint: bytes
    key_id: str | None
    traceparent: str | None = None


class ExistingRun(NamedTuple):
    """A run as the ledger holds it at the claim."""

    status: str
    attempts: int
    cycle: int
    is_due: bool


class Todo(NamedTuple):
    """A run to lease; `attempt` is the number its next start gets, `is_sole` whether the event has no other."""

    event: ClaimedEvent
    plan: Plan
    attempt: int
    cycle: int
    is_sole: bool


class Triage:
    """Sorts the runs of locked events.

    `leased`: to be run, in order. `put_off`: (event, handler) this worker may not run now. `lost`: (event,
    handler, dead) started and never ended; dead if no attempt is left. `ignored`: events nobody takes.
    """

    def __init__(
        self,
        events: Sequence[ClaimedEvent],
        planner: Planner,
        existing: Mapping[int, Mapping[str, ExistingRun]],
        paused: AbstractSet[str],
    ) -> None:
        self.events = events
        self.leased: list[Todo] = []
        self.put_off: list[tuple[int, str]] = []
        self.lost: list[tuple[int, str, bool]] = []
        self.ignored: list[int] = []
        self._planner = planner
        self._paused = paused
        for event in events:
            if existing[event.id]:
                is_sole = len(existing[event.id]) == 1
                for handler, run in existing[event.id].items():
                    self._sort_existing(event, handler, run, is_sole=is_sole)
            else:
                self._sort_new(event)

    def _sort_new(self, event: ClaimedEvent) -> None:
        plans = self._planner.matching(event.source, event.provider, event.type)
        if not plans:
            self.ignored.append(event.id)
        for plan in plans:
            self._lease(event, plan, ExistingRun("waiting", 0, 1, is_due=True), is_sole=len(plans) == 1)

    def _sort_existing(self, event: ClaimedEvent, handler: str, run: ExistingRun, *, is_sole: bool) -> None:
        if run.status not in {"waiting", "running"} or not run.is_due:
            return
        plan = self._planner.named(handler)
        if plan is None:
            self.put_off.append((event.id, handler))
            return
        is_spent = run.attempts >= plan.attempts
        if run.status == "running" or is_spent:
            self.lost.append((event.id, handler, is_spent))
        if not is_spent:
            self._lease(event, plan, run, is_sole=is_sole)

    def _lease(self, event: ClaimedEvent, plan: Plan, run: ExistingRun, *, is_sole: bool) -> None:
        if plan.name in self._paused:
            self.put_off.append((event.id, plan.name))
        else:
            self.leased.append(Todo(event, plan, run.attempts + 1, run.cycle, is_sole))
