"""Mistakes of a worker or a sweep; each name completes "a worker that …"."""

import dataclasses
import time
from datetime import UTC, datetime

from hookonce.jobs import drain
from hookonce.jobs.attempts import attempt as attempts
from hookonce.jobs.attempts import endings
from hookonce.jobs.attempts.attempt_connection import AttemptConnection
from hookonce.jobs.maintenance.sweep import Sweep
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import engines
from hookonce.receiver.ledger.runs import (
    claim_plan,
    claim_reads,
    claim_writes,
    claimed,
    claims,
    due_events,
    event_status,
    marks,
    run_end,
)
from hookonce.receiver.ledger.runs.run_end import AttemptResult
from tests.stories.mistakes import changed, replace, reword


def never_sweeps():
    replace(Sweep, "once", lambda _: 0)


def marks_done_in_a_second_transaction():
    def attempt(self, run, handler, following):
        event = self._event(run, handler)
        with self.connection.begin():
            reach("handler.entered")
            result = handler.function(event, self.connection)
        reach("handler.returned")
        with self.connection.begin():
            started = run_end.end(
                engines.raw(self.connection), run, AttemptResult("done", result), following()
            )
        reach("run.committed")
        return started

    replace(attempts.Executor, "_attempt", attempt)


def commits_what_a_failed_attempt_wrote():
    def keep(self):
        if self._connection is not None:
            engines.raw(self._connection).commit()
        right(self)

    right = replace(AttemptConnection, "_reset", keep)


def believes_that_what_failed_is_rolled_back():
    replace(marks, "ask", lambda *_: False)


def takes_a_rollback_for_a_commit():
    replace(marks, "ask", lambda *_: True)


OURS = "AND token = %(token)s AND status = 'running'"
ENDINGS = "_END_DONE", "_END_UNDONE"


def finishes_without_the_token():
    reword(run_end, "_END_DONE", OURS, "AND status = 'running'")


def fails_without_the_token():
    reword(run_end, "_END_UNDONE", OURS, "AND status = 'running'")


def finishes_what_is_not_running():
    for ending in ENDINGS:
        reword(run_end, ending, OURS, "AND token = %(token)s")
        reword(run_end, ending, "token = NULL, lease_until = NULL", "lease_until = NULL")
    reword(
        event_status, "DERIVE_EVENT_STATUS", "status = 'running' OR token IS NOT NULL", "status = 'running'"
    )


def leases_what_follows_as_if_it_waited():
    def leased(*fields, **named):
        lease = drain.DRAIN_BUDGET + claimed.UNSTARTED_MARGIN
        return dataclasses.replace(right(*fields, **named), lease=lease)

    right = replace(claim_plan, "ClaimedRun", leased)


def leases_by_its_own_clock():
    places = (
        (due_events, "_DUE_ANY"),
        (due_events, "_DUE_NAMED"),
        (claim_reads, "_RUNS"),
        (claim_writes, "_LEASE"),
    )
    statements = {place: getattr(*place) for place in places}

    def claim(*args, **options):
        now = f"'{datetime.fromtimestamp(time.time(), UTC).isoformat()}'::timestamptz"
        for place, statement in statements.items():
            replace(*place, changed(statement, "now()", now, count=-1))
        return right(*args, **options)

    right = replace(claims, "claim", claim)


def counts_an_attempt_at_its_end():
    reword(claim_writes, "_LEASE", "starts::int", "0")
    reword(run_end, "_END_DONE", "sealed_result =", "attempts = attempts + 1, sealed_result =")
    reword(run_end, "_END_UNDONE", "attempts = attempts - %(refund)s", "attempts = attempts + 1 - %(refund)s")
    starts_for_nothing()


def charges_the_whole_batch():
    reword(claim_writes, "_LEASE", "starts::int", "leased::int")
    starts_for_nothing()


def starts_for_nothing():
    for ending in ENDINGS:
        reword(run_end, ending, "attempts = attempts + 1, started_at", "attempts = attempts, started_at")


def charges_all_that_were_under_way():
    def sort(self, event, run, *, is_sole):
        right(self, event, run._replace(beside=False), is_sole=is_sole)

    right = replace(claim_plan.ClaimPlan, "_sort_existing", sort)


def stops_on_its_budget_without_ringing():
    replace(drain.Drain, "_notify", lambda _: None)


def buries_at_the_first_failure():
    replace(endings, "failure", lambda _run, _handler, error: AttemptResult("dead", error=error))


def runs_the_first_handler_only():
    class First:
        def __init__(self, planner):
            self._planner = planner

        def matching(self, *event):
            return self._planner.matching(*event)[:1]

        def named(self, name):
            return self._planner.named(name)

    def init(self, events, planner, existing, paused, token):
        right(self, events, First(planner), existing, paused, token)

    right = replace(claim_plan.ClaimPlan, "__init__", init)
