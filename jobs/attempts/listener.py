"""Listeners to attempts: one that hears nothing, unless traces are wanted (`jobs.attempts.traces`)."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.states import RunStatus


class Listener:
    """Hears nothing."""

    def attempting(self, _runs: Sequence[ClaimedRun]) -> AbstractContextManager[object]:
        """Hear that an attempt, of a run or of a batch, is under way, as long as the block lasts."""
        return nullcontext()

    def ended(self, run: ClaimedRun, ending: AttemptResult) -> None:
        """Hear how an attempt of a run ended; that is durable by now, and the block may be over."""

    def over(self, run: ClaimedRun) -> None:
        """Hear that nothing more comes of an attempt of a run, however it ended."""

    def ended_batch(self, status: RunStatus, *, has_failed: bool) -> None:
        """Hear, in the block, what became of runs of the batch."""
