"""Numbers, retention, erasure, the dedup window, and who is asking."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import Field, computed_field

from hookonce.receiver.desk.models import Cursor, Reference, RequestModel, Time
from hookonce.receiver.desk.refusals import (
    AFTERWARDS,
    NAMED_OR_CHOSEN,
    Conflict,
    Contradictory,
    NotFound,
    left_alone,
)
from hookonce.receiver.desk.registry import Asks, Desk, Plan, action
from hookonce.receiver.desk.replays import named_events
from hookonce.receiver.desk.searches import Contents
from hookonce.receiver.ledger.access.api_tokens import Scope, Token
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.maintenance import erasure, steady_clock
from hookonce.receiver.ledger.maintenance.erasure import Erasure
from hookonce.receiver.ledger.maintenance.retention import Pruned, Retention, RetentionPass
from hookonce.receiver.ledger.maintenance.steady_clock import ClockHeld
from hookonce.receiver.ledger.queries.event_filter import Filter
from hookonce.receiver.ledger.rows import Identifier, Ours, ResponseModel
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.dedup_window import DedupWindow

ERASURE_BUDGET = timedelta(seconds=5)
"""How long one step of an erasure looks."""
PRUNE_BATCH = 250
"""Rows looked at in one transaction: few enough that no delivery waits long for the disk behind them."""
MAX_TRIES = 10
"""How often a day in use is tried."""


class PruneRequest(RequestModel):
    """Whether to delete, or only to say what would go."""

    dry_run: bool = False
    trust_clock: bool = Field(default=False, description="prune although the clock leapt: it is right now")


class Forgotten(ResponseModel):
    """How many event ids the dedup window forgot."""

    forgotten: int | None = Field(
        description="null while Redis does not answer: they stay there until they run out, and are not believed"
    )


@action(scope=Scope.ADMIN, plan_scope=Scope.READ, is_atomic=False)
def prune(desk: Desk, asked: PruneRequest) -> Pruned:
    """Delete data past its retention, in small steps; safe to repeat. The answer comes when all is done.

    A plan (`dry_run`) only counts, so the scope `read` is enough for it.
    """
    pruning = RetentionPass(
        Retention.of(desk.settings),
        dry_run=asked.dry_run,
        patience=MAX_TRIES,
        size=PRUNE_BATCH,
        trusts_clock=asked.trust_clock,
    )
    if asked.trust_clock and not asked.dry_run:
        steady_clock.trust(desk.connection, desk.who)
    try:
        began = time.monotonic()
        for _ in pruning.steps(desk.connection):
            if not asked.dry_run:  # rests as long as the step took, for those who deliver meanwhile
                time.sleep(time.monotonic() - began)
            began = time.monotonic()
    except ClockHeld as error:
        raise Conflict(f"nothing is pruned: {error}", code="clock_held") from None
    finally:
        pruning.audit(desk.connection, desk.who)
    return pruning.done


class ErasureRequest(Contents):
    """Which events to erase, by their names or by a filter and what they contain; or only to say which would be."""

    events: Annotated[list[Reference], Field(max_length=erasure.ERASE_BATCH)] = Field(default_factory=list)
    refused_until: Time | None = Field(
        default=None,
        description="no events by the filter, but rejected deliveries before then, besides `events`",
    )
    cursor: Cursor | None = Field(default=None, description="`next` of the step before")
    dry_run: bool = False


class Erased(Erasure):
    """The outcome of each event that was named, or found by a filter."""

    dry_run: bool
    unknown: list[Identifier] = Field(description="ids that the ledger does not hold")
    unknown_names: list[str] = Field(description="those that were no ledger ids, and name no event")
    refused_until: datetime | None = Field(
        description="up to when rejected deliveries were looked for; null where none were"
    )
    next: Cursor | None = Field(description="by a filter: ask for the next step with it; null at the end")

    @computed_field  # type: ignore[prop-decorator]
    @property
    def left_alone(self) -> list[Ours]:
        """The events that were not erased, and why, in words."""
        return left_alone(self.open, "they are yet to be handled", f"{AFTERWARDS}, or discard them first")


def _the_next(here: Asks, asked: ErasureRequest) -> Plan:
    """Show what would be erased, by name: of a filter the next events, and the rejected deliveries of that time.

    Raises: `Contradictory`.
    """
    shown = here.ask(erase_events, asked=asked.model_copy(update={"dry_run": True}))
    names, until = [str(each) for each in shown.erased], shown.refused_until
    if not (names or shown.refused):  # a plan of nothing erases nothing, whatever ends meanwhile
        named = asked.model_copy(update={"dry_run": True})
    elif asked.events or until is None:
        unknown = [*map(str, shown.unknown), *shown.unknown_names]
        update = {"events": [*names, *unknown], "dry_run": False}
        named = (asked if asked.events else ErasureRequest()).model_copy(update=update)
    else:
        update = {"events": names, "refused_until": until, "cursor": None, "dry_run": False}
        named = asked.model_copy(update=update)
    return Plan(shown, {"asked": named})


@action(scope=Scope.ADMIN, looks=_the_next, is_atomic=False)
def erase_events(desk: Desk, asked: ErasureRequest) -> Erased:
    """Erase bodies, headers, errors, logs and results of events that have ended, and what their steps gave.

    Their ids stay, so that a late copy is still a duplicate; they can't be replayed any more, and dead ones are
    discarded. What handlers wrote is in tables of your own. Up to 200 at once, all in one transaction. By a filter it
    is one step, for some seconds: ask again with `next` until there is none, and once more with `dry_run`,
    to see that nothing is left. A text is looked for in all that is kept, of rejected deliveries too.
    """
    needle = asked.needle if asked.text is not None or asked.where is not None else None
    is_filtered = needle is not None or asked.wanted != Filter()
    is_plan = asked.refused_until is not None and needle is not None
    if not (is_plan or is_filtered != bool(asked.events)) or (
        asked.text is not None and asked.where is not None
    ):
        raise Contradictory(NAMED_OR_CHOSEN)
    named, who = named_events(desk, asked.events), None if asked.dry_run else desk.who
    wanted, until = asked.wanted_by(desk), None
    keyring = desk.settings.keyring
    if is_filtered and not is_plan:
        done = erasure.step(
            desk.connection, keyring, wanted, needle, who=who, before=asked.cursor, budget=ERASURE_BUDGET
        )
    else:
        done = erasure.erase(desk.connection, named.ids, who, keyring)
    if needle is not None and done.next is None:
        until = min(each for each in (asked.refused_until, asked.until, datetime.now(UTC)) if each)
        refused = erasure.let_go(desk.connection, keyring, replace(wanted, until=until), needle, who)
        done.refused, done.closed = refused.refused, done.closed + refused.closed
    unknown = sorted({*named.ids}.difference(done.erased, done.open))
    named.require_any(known=len(named.ids) - len(unknown))
    return Erased(
        **dict(done),
        dry_run=asked.dry_run,
        unknown=unknown,
        unknown_names=named.unknown,
        refused_until=until,
    )


@action(scope=Scope.ADMIN, is_atomic=False)
def forget_window(desk: Desk) -> Forgotten:
    """Forget every event id in Redis, after a restore of the database; duplicates are then found by the ledger."""
    connections.renew_window_key(desk.connection)  # it counts even where Redis does not answer
    try:
        with connect(desk.settings.window_url) as client:
            return Forgotten(forgotten=DedupWindow(client, CircuitBreaker()).forget())
    except (RedisUnavailable, ValueError):  # the last: there is no address
        return Forgotten(forgotten=None)


@action(scope=None)
def get_token(desk: Desk) -> Token:
    """Show the name and the scopes of the token that is asking."""
    if desk.token is None:
        raise NotFound("no token came with this: it is asked of the ledger itself")
    return desk.token
