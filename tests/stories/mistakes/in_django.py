"""Mistakes of a worker in Django; each name completes "a worker that …"."""

from django.db import transaction

from hookonce.jobs.attempts.django_executor import DjangoExecutor
from hookonce.receiver.failpoints import reach
from hookonce.receiver.ledger.runs import marks
from hookonce.receiver.ledger.runs.ends import AttemptResult
from tests.stories.mistakes import replace


def marks_done_in_a_second_transaction():
    def attempt(self, run, handler, following):
        self.begin()
        event = self._event(run, handler)
        self._reset()
        with transaction.atomic():
            reach("handler.entered")
            result = handler.function(event, self._database())
        reach("handler.returned")
        return self._end(run, AttemptResult("done", result), following())

    replace(DjangoExecutor, "_attempt", attempt)


def believes_that_what_failed_is_rolled_back():
    replace(marks, "ask", lambda *_: False)
