"""Mistakes of a worker or a sweep; each name completes "a worker that …"."""

# ruff: noqa: SLF001  a mistake is made inside

import time
from datetime import UTC, datetime

from jobs import drain, execution
from jobs.sweep import Sweep
from receiver import engines
from receiver.failpoints import reach
from receiver.ledger import claims, runs, triage
from receiver.ledger.runs import Ending
from tests.stories.mistakes import changed


def never_sweeps():
    Sweep.once = lambda _: 0


def marks_done_in_a_second_transaction():
    def attempt(self, run, handler, following):
        event = self._event(run)
        with self.connection.begin():
            reach("handler.entered")
            result = handler.function(event, self.connection)
        reach("handler.returned")
        with self.connection.begin():
            started = runs.end(engines.raw(self.connection), run, Ending("done", result), following())
        reach("run.committed")
        return started

    execution.Executor._attempt = attempt


def commits_what_a_failed_attempt_wrote():
    def keep(self):
        if self._connection is not None:
            engines.raw(self._connection).commit()
        right(self)

    right = execution.Executor._reset
    execution.Executor._reset = keep


OURS = "AND token = %(token)s AND status = 'running'"


def finishes_without_the_token():
    runs._END = changed(runs._END, OURS, "AND status = 'running'")


def fails_without_the_token():
    either = "AND (token = %(token)s OR %(status)s <> 'done') AND status = 'running'"
    runs._END = changed(runs._END, OURS, either)


def finishes_what_is_not_running():
    runs._END = changed(runs._END, OURS, "AND token = %(token)s")
    runs._END = changed(runs._END, "token = NULL, lease_until = NULL, result", "lease_until = NULL, result")
    runs.DERIVE = changed(runs.DERIVE, "status = 'running' OR token IS NOT NULL", "status = 'running'")


def leases_by_its_own_clock():
    right, statements = (
        claims.claim,
        {name: getattr(claims, name) for name in ("_DUE_ANY", "_DUE_NAMED", "_RUNS", "_LEASE")},
    )

    def claim(*args, **options):
        now = f"'{datetime.fromtimestamp(time.time(), UTC).isoformat()}'::timestamptz"
        for name, statement in statements.items():
            setattr(claims, name, changed(statement, "now()", now, count=-1))
        return right(*args, **options)

    claims.claim = claim


def counts_an_attempt_at_its_end():
    claims._LEASE = changed(claims._LEASE, "starts::int", "0")
    runs._END = changed(runs._END, "attempts = attempts - %(refund)s", "attempts = attempts + 1 - %(refund)s")
    runs._END = changed(runs._END, "attempts = attempts + 1, started_at", "attempts = attempts, started_at")


def charges_the_whole_batch():
    claims._LEASE = changed(claims._LEASE, "starts::int", "leased::int")
    runs._END = changed(runs._END, "attempts = attempts + 1, started_at", "attempts = attempts, started_at")


def stops_on_its_budget_without_ringing():
    drain.Drain._ring = lambda _: None


def buries_at_the_first_failure():
    execution._failure = lambda _run, _handler, error: Ending("dead", error=error)


def runs_the_first_handler_only():
    class First:
        def __init__(self, planner):
            self._planner = planner

        def matching(self, *event):
            return self._planner.matching(*event)[:1]

        def named(self, name):
            return self._planner.named(name)

    right = triage.Triage.__init__

    def init(self, events, planner, existing, paused):
        right(self, events, First(planner), existing, paused)

    triage.Triage.__init__ = init
