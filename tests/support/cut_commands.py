"""A shop whose receiver, or worker, dies at each failpoint in turn, and what its client is told in the end.

`python -m tests.support.cut_commands receiver|worker <database> <redis> <directory>`: says one JSON line per failpoint.
"""

import json
import sys
from pathlib import Path

from hookonce.receiver.failpoints import arm
from tests.support.children import in_child
from tests.support.commands import Shop
from tests.support.waiting import until

BODY = {"amount": 5}
TRIES = 50
ACCEPTED = 202
LET_TIME_PASS = (
    "UPDATE hookonce.queue SET due_at = now()",
    "UPDATE hookonce.claims SET lease_until = now()",
)


class Story:
    """One role's failpoints, over a ledger that all share."""

    def __init__(self, role, database_url, redis_url, directory):
        self._role, self._place = role, (database_url, redis_url, Path(directory))
        self._log = Path(directory) / "points"
        self._payments = set()

    def ask(self, key, fatal=None):
        opened = Shop(*self._place)
        if fatal is not None:
            arm(fatal, str(self._log))
        answer = opened.ask(BODY, key)
        # the window is settled beside the answer, or after it
        until(lambda: opened.app.extensions["hookonce"].is_idle)
        return answer.status, answer.body.decode(), answer.is_replayed

    def work(self, fatal=None):
        opened = Shop(*self._place)
        for statement in LET_TIME_PASS:
            opened.ledger.execute(statement)
        if fatal is not None:
            arm(fatal, str(self._log))
        return opened._drain.run_due()  # noqa: SLF001

    def finish(self, key):
        """Ask and work until there is an answer, as a client and a sweep do."""
        for _ in range(TRIES):
            _, answer = in_child(lambda: self.ask(key))
            if answer[0] != ACCEPTED:
                return answer
            in_child(self.work)
        raise TimeoutError(f"no answer after {TRIES} tries")

    def told(self, fatal):
        """What became of a command whose receiver or worker died at this failpoint."""
        key = f"request-{fatal}"
        self._log.write_text("")
        if self._role == "worker":
            in_child(lambda: self.ask(key))
            survived, _ = in_child(lambda: self.work(fatal))
        else:
            survived, _ = in_child(lambda: self.ask(key, fatal))
        met = self._log.read_text().split()
        answers = [self.finish(key) for _ in range(2)]
        _, now = in_child(lambda: Shop(*self._place).payments)
        assert len(now) == len(set(now)), "an effect was doubled"
        effects = len(set(now) - self._payments)
        self._payments = set(now)
        return {"survived": survived, "met": met, "answers": answers, "effects": effects}


if __name__ == "__main__":
    story = Story(*sys.argv[1:])
    for fatal in range(1, 100):
        told = story.told(fatal)
        sys.stdout.write(json.dumps(told) + "\n")
        if told["survived"]:
            break
