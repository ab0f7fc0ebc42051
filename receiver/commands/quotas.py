"""A client's quota of new keys: taken from before a command is stored, and given back where its key was known before.

So however many ask at one moment, no two get the same last place. A key that is known is answered whatever the quota
holds, and those who ask under one new key at once need one place.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

from hookonce.receiver.commands import answers
from hookonce.receiver.commands.outcomes import Outcomes
from hookonce.receiver.commands.requests import Asked, Refused
from hookonce.receiver.config.commands import Command
from hookonce.receiver.intake.load import Load, OverLimit
from hookonce.receiver.ledger.store import Stored, Verdict

_TWIN = timedelta(milliseconds=100)
"""In which another process stores the command that has the last place."""


class Quotas:
    """The quotas of all clients, counted by all processes together."""

    def __init__(self, load: Load, outcomes: Outcomes) -> None:
        self._load = load
        self._outcomes = outcomes
        self._lock = threading.Lock()
        self._placed: Counter[str] = Counter()
        """Commands that have a place and are being stored here."""

    def store(
        self, command: Command, client: str, asked: Asked, commit: Callable[[], list[Stored]]
    ) -> Stored:
        """Commit a command if its client's quota has a place for it, or its key is known.

        Nothing stays taken if the commit fails. Raises: `Refused`; what `commit` does.
        """
        if command.quota is None:
            raise ValueError(f"the command '{command.name}' has no quota")
        whose = limited_by(command, client)
        wait = self._load.take(whose, command.quota)
        taken, is_new = int(not wait), False
        with self._lock:
            self._placed[asked.digest] += taken
        try:
            if wait and not self._is_known(command, asked):
                raise Refused(answers.too_many_keys(OverLimit(wait).retry_after), close=False)
            [row] = commit()
            is_new = row.verdict not in {Verdict.DUPLICATE, Verdict.CONFLICT}
        finally:
            with self._lock:
                self._placed[asked.digest] -= taken
                self._placed += Counter()  # without those that are none
            if taken != is_new:
                self._load.count(whose, command.quota, is_new - taken)
        return row

    def _is_known(self, command: Command, asked: Asked) -> bool:
        """Whether a command is stored, or about to be."""
        for pause in (0.0, _TWIN.total_seconds()):
            time.sleep(pause)
            with self._lock:
                is_placed = self._placed[asked.digest] > 0
            if is_placed or self._outcomes.of((command.source, asked.digest)) is not None:
                return True
        return False


def limited_by(command: Command, client: str) -> str:
    """Return the name under which a client's requests for a command are counted."""
    return f"{command.source}:{client}"
