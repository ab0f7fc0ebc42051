"""Memory after many events: the peak of any process, what the second half of the events added, and attacks after it."""

import time

from bench.load.generator import Plan
from bench.load.sending import BadAnswers, send
from bench.run import Run
from bench.servers import attackers
from bench.servers.process_costs import peak_megabytes, resident_megabytes
from bench.servers.stack import Server, Site
from hookonce.receiver.dev.embedded.process import children

EVENTS = 200_000
QUICK_EVENTS = 400
_STEP = 10_000  # deliveries are made and sent in steps: 16 MB of requests each
_ATTACK = 2.0  # seconds that each attack takes
_SHARE = 0.4  # of the time left that each half may take


def memory(run: Run) -> None:
    """Take in and handle many events with two gunicorn and two RQ workers, fewer if time is short; then attack."""
    ours = run.stack.ours
    ours.empty()
    attacks = run.pick(_ATTACK, _ATTACK / 8)
    handled = min(run.until, run.rounds_until) - (attacks + 1) * len(attackers.CONNECTIONS) - 5
    with ours.serve("wsgi:application") as server, ours.workers(2) as workers:
        target = QUICK_EVENTS if run.quick else EVENTS
        began = time.monotonic()
        half = _handle(ours, server, 0, target // 2, began + (handled - began) * _SHARE)
        receivers_half, workers_half = (resident_megabytes(pids) for pids in (children(server.pid), workers))
        total = _handle(ours, server, half, 2 * half, handled)
        receivers = children(server.pid)
        run.note(
            memory_events=total,
            receiver_peak_mb=peak_megabytes(receivers),
            worker_peak_mb=peak_megabytes(workers),
            receiver_growth_mb=resident_megabytes(receivers) - receivers_half,
            worker_growth_mb=resident_megabytes(workers) - workers_half,
        )
        every = list(attackers.CONNECTIONS.items())
        for name, connections in every[::4] if run.quick else every:
            with attackers.attacking(name, server.port, connections, attacks) as attack:
                attack.wait()
        if children(server.pid) != receivers:
            raise BadAnswers("a receiver was replaced while it was attacked")
        run.note(attacked_peak_mb=peak_megabytes(receivers))
    ours.empty()


def _handle(site: Site, server: Server, have: int, want: int, until: float) -> int:
    """Send until so many events are handled in all or the time is over; give how many were."""
    while have < want and (have == 0 or time.monotonic() < until):
        step = min(_STEP, want - have)
        send(Plan(server.port, count=step))
        have += step
        site.await_effects(have, 120)
    if site.value("SELECT count(*) FROM effects") != have:
        raise BadAnswers("the number of events handled is not the number of events sent")
    return have
