"""Mistakes of a worker in Django; each name completes "a worker that …"."""

from datetime import timedelta

from django.db import connections, transaction

from hookonce.jobs.attempts.attempt import Executor
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import marks
from hookonce.receiver.ledger.runs.ends import AttemptResult, Ended
from tests.stories.mistakes import replace


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
        self.connection.end(ended, attempt.marking)

    replace(Executor, "_make", make)


def believes_that_what_failed_is_rolled_back():
    replace(marks, "ask", lambda *_: False)
