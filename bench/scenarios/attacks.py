"""Ten attacks, each from one machine, on our own HTTP server and on uvicorn: what honest senders beside them wait."""

import time

from bench.load.generator import Plan
from bench.load.sending import BadAnswers, prepare
from bench.run import Run
from bench.servers.attackers import CONNECTIONS, attacking
from bench.servers.peers import Peers, are_installed
from bench.servers.stack import Server

RATE = 20.0
"""Honest deliveries a second."""
_AHEAD = 0.5  # seconds that attackers have before the first of them


def attacks(run: Run) -> None:
    """Attack both directly; note how many honest deliveries got no 2xx, and the longest wait for an answer."""
    ours = run.stack.ours
    ours.empty()
    with ours.serve("wsgi:application") as server:
        failed, longest = _attacked(run, server)
    run.note(attacked_failed=failed, attacked_longest_ms=longest)
    ours.empty()
    if not are_installed():
        print("  uvicorn is left out: `make bench-peers` installs it", flush=True)
        return
    with Peers(run.stack).starlette() as server:
        failed, longest = _attacked(run, server)
    run.note(uvicorn_attacked_failed=failed, uvicorn_attacked_longest_ms=longest)


def _attacked(run: Run, server: Server) -> tuple[float, float]:
    failed, longest = 0, 0.0
    seconds = run.pick(2.0, 0.5)
    every = list(CONNECTIONS.items())
    for name, connections in every[::4] if run.quick else every:
        plan = Plan(server.port, count=int(RATE * seconds), seconds=seconds, rate=RATE, connections=1)
        honest = prepare(plan)
        with attacking(name, server.port, connections, seconds + 2 * _AHEAD) as attack:
            time.sleep(_AHEAD)
            honest.start()
            try:
                answer = honest.answer()
            except BadAnswers:  # it could not even connect
                answer = {"statuses": {}, "longest_ms": 0.0}
            attack.wait()
        good = sum(n for status, n in answer["statuses"].items() if status.startswith("2"))
        failed += plan.count - good
        longest = max(longest, answer["longest_ms"])
    return failed, longest
