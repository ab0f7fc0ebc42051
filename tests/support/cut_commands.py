"""A shop whose receiver, or worker, dies at each failpoint in turn, and what its client is told in the end.

`python -m tests.support.cut_commands receiver|worker <database> <redis> <directory>`: says one JSON line per failpoint.
"""

import json
import os
import signal
import sys
from pathlib import Path

from hookonce.receiver.failpoints import arm
from tests.support.commands import DEADLINE, Shop

BODY = {"amount": 5}
TRIES = 50


def in_child(work):
    """Do it in a process of its own, with connections of its own; whether it came to its end, and what it said."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, json.dumps(work()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    _, status = os.waitpid(child, 0)
    assert status in {0, signal.SIGKILL}, status
    return status == 0, json.loads(text) if text else None


def main(role, database_url, redis_url, directory):
    log = Path(directory) / "points"

    def shop():
        return Shop(database_url, redis_url, Path(directory))

    def ask(key, fatal=None):
        opened = shop()
        if fatal is not None:
            arm(fatal, str(log))
        answer = opened.ask(BODY, key)
        return answer.status, answer.body.decode(), answer.is_replayed

    def work(fatal=None):
        opened = shop()
        opened.ledger.execute(
            "UPDATE hookonce.runs SET due_at = now(), lease_until = now() WHERE due_at IS NOT NULL"
        )
        opened.ledger.execute("UPDATE hookonce.events SET due_at = now() WHERE due_at IS NOT NULL")
        if fatal is not None:
            arm(fatal, str(log))
        return opened._drain.run_due()  # noqa: SLF001

    def finish(key):
        """Ask and work until there is an answer, as a client and a sweep do."""
        for _ in range(TRIES):
            _, answer = in_child(lambda: ask(key))
            if answer[0] != 202:
                return answer
            in_child(work)
        raise TimeoutError(f"no answer after {DEADLINE} s")

    payments = set()
    for fatal in range(1, 100):
        key = f"request-{fatal}"
        log.write_text("")
        if role == "worker":
            in_child(lambda key=key: ask(key))
            survived, _ = in_child(lambda fatal=fatal: work(fatal))
        else:
            survived, _ = in_child(lambda key=key, fatal=fatal: ask(key, fatal))
        met = log.read_text().split()
        answers = [finish(key) for _ in range(2)]
        _, now = in_child(lambda: shop().payments)
        assert len(now) == len(set(now)), "an effect was doubled"
        told = {"survived": survived, "met": met, "answers": answers, "effects": len(set(now) - payments)}
        payments = set(now)
        sys.stdout.write(json.dumps(told) + "\n")
        if survived:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
