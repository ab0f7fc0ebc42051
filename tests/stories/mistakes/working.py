"""Mistakes of a worker or a sweep; each name completes "a worker that …"."""

import time
from datetime import UTC, datetime, timedelta

from hookonce.jobs import buffer, claimer, plan
from hookonce.jobs.attempts import attempt as attempts
from hookonce.jobs.attempts import endings, heartbeat, transaction_guard
from hookonce.jobs.attempts.attempt_connection import AttemptConnection
from hookonce.jobs.attempts.driver_cursors import Effect, GivenCursor
from hookonce.jobs.attempts.transaction_guard import StatementGuard, TransactionGuard
from hookonce.jobs.maintenance.sweep import Sweep
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import engines, functions
from hookonce.receiver.ledger.runs import claims, due_rows, ends, failed_attempts, takeover
from hookonce.receiver.ledger.runs.ends import AttemptResult
from tests.stories.mistakes import replace, reword
from tests.support.rewording import texts


def never_sweeps():
    replace(Sweep, "once", lambda _: 0)


def marks_done_in_a_second_transaction():
    def make(self, attempt, _following):
        self._read_events(attempt, None)
        connection = self.connection.connection
        self.connection.reset()
        with connection.begin():
            reach("handler.entered")
            result = attempt.handler.function(attempt.events[0], connection)
        reach("handler.returned")
        with connection.begin():
            ended = ends.Ended(attempt.runs, [AttemptResult("done", result)], timedelta(0))
            ends.end(engines.raw(connection), ended)
        reach("run.committed")

    replace(attempts.Executor, "_make", make)


def commits_what_a_failed_attempt_wrote():
    def keep(self):
        if self._connection is not None:
            engines.raw(self._connection).commit()
        right(self)

    right = replace(AttemptConnection, "reset", keep)


def sends_by_the_simple_protocol():
    def execute_send(self, query, *, binary=None, **_):
        super(GivenCursor, self)._execute_send(query, force_extended=False, binary=binary)

    replace(GivenCursor, "_execute_send", execute_send)


def reads_no_first_words():
    replace(transaction_guard, "effect_of", lambda _: Effect.NONE)


def lets_a_handler_commit():
    replace(StatementGuard, "refuse", lambda *_: None)


def takes_a_rollback_for_a_commit():
    replace(TransactionGuard, "roll_back", lambda self: self.refuse())


def finishes_without_the_token():
    reword(functions, " AND q.token = %(token)s::uuid\n", "\n")


def finishes_what_is_not_its_own_any_more():
    reword(functions, "LEFT JOIN gone", "JOIN gone")


def fails_without_the_token():
    reword(
        failed_attempts,
        "WHERE q.token = %(token)s",
        "WHERE q.token IS NOT NULL OR %(token)s IS NULL",
    )


def never_renews():
    replace(heartbeat.Heartbeat, "beat", lambda _: None)


def leases_by_its_own_clock():
    modules = (due_rows, claims, takeover)
    said = {module: texts(module) for module in modules}

    def claim(*args, **options):
        now = f"'{datetime.fromtimestamp(time.time(), UTC).isoformat()}'::timestamptz"
        for module in modules:
            for name, text in said[module].items():
                replace(module, name, text.replace("now()", now))
        return right(*args, **options)

    right = replace(claims, "claim", claim)


def starts_the_last_of_a_claim_first():
    def put(self, runs, until):
        return right(self, runs[::-1], until)

    right = replace(buffer.Buffer, "put", put)


def charges_nobody_who_was_alone():
    settle_as(is_suspect=False)


def charges_the_whole_batch():
    settle_as(is_suspect=True)


def settle_as(*, is_suspect):
    def settle(connection, claim, left, locked, how):
        return right(
            connection, claim._replace(is_suspect=is_suspect, is_started=is_suspect), left, locked, how
        )

    right = replace(takeover, "settle_rows", settle)


def charges_all_that_were_under_way():
    def settle(connection, claim, left, locked, how):
        rows = [row for row in claim.rows if row in left]
        for part, is_suspect in ((rows[: claim.slots], True), (rows[claim.slots :], False)):
            events, places = [event for event, _ in part], [n for _, n in part]
            those = claim._replace(
                events=events, places=places, slots=0, is_suspect=is_suspect, is_started=is_suspect
            )
            right(connection, those, left, locked, how)

    right = replace(takeover, "settle_rows", settle)


def stops_on_its_budget_without_ringing():
    replace(claimer.Claimer, "_notify", lambda _: None)


def buries_at_the_first_failure():
    replace(endings, "failure", lambda _run, _handler, error: AttemptResult("dead", error=error))


def runs_the_first_handler_only():
    def runs(self, row):
        return right(self, row)[:1]

    right = replace(plan.Plan, "_runs", runs)
