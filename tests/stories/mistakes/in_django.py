"""Mistakes of a worker in Django; each name completes "a worker that …"."""

from datetime import timedelta

from django.db import connections, transaction

from hookonce.jobs.attempts import django_transaction
from hookonce.jobs.attempts.attempt import Executor
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.database import functions
from hookonce.receiver.ledger.runs.ends import AttemptResult, Ended
from tests.stories.mistakes import replace, reword


def marks_done_in_a_second_transaction():
    def make(self, attempt, _following):
        self._read_events(attempt, None)
        self.connection.reset()
        with transaction.atomic():
            reach("handler.entered")
            result = attempt.handler.function(attempt.events[0], connections["default"])
        reach("handler.returned")
        self.connection.begin()
        ended = Ended(attempt.runs, [AttemptResult("done", result)], timedelta(0))
        self.connection.end(ended)

    replace(Executor, "_make", make)


def leaves_the_guard_out():
    reword(
        functions,
        "INSERT INTO hookonce.guards DEFAULT VALUES RETURNING xact_id",
        "SELECT pg_current_xact_id()",
    )
    replace(django_transaction._Opened, "_require_own", lambda _: None)  # noqa: SLF001
