"""A receiver under attack, and what honest senders may expect of it.

The bounds are those of a machine that has other things to do.
"""

import contextlib

from tests.http.conftest import serving
from tests.soak.attacks import measure
from tests.support.attacks import certificate
from tests.support.attacks.flood import ATTACKS

SECONDS, LONG = 0.9, 1.5
AHEAD = 0.5
"""Seconds after which all attackers are at work."""
MEDIAN, WORST = 0.25, 1.5
"""Seconds that a delivery waits; nearly all of the worst ones are the machine's."""


@contextlib.contextmanager
def attacked(kind, directory, database_url, redis_url):
    """A receiver to be attacked, `plain` or under `tls`: its one worker is not replaced, and nothing fails in it."""
    options, context = certificate.made(directory) if kind == "tls" else ((), None)
    with serving(
        directory,
        database_url,
        redis_url,
        max_body=25 * 1024 * 1024,
        options=options,
        context=context,
        HOOKONCE_LOG_LEVEL="WARNING",
    ) as running:
        measure(running, "nobody", AHEAD, context, ahead=0)  # it opens its connections
        [worker] = running.workers
        yield running
        assert running.workers == [worker], "the worker was replaced"
        assert "Traceback" not in running.logged()


def check(server, name, seconds):
    """Attack for a while, with honest senders beside."""
    count = min(ATTACKS[name].count, 1000)

    deliveries, alive, ready, through = measure(server, name, seconds, server.context, count, AHEAD)

    wrong = [*deliveries.wrong, *alive.wrong, *ready.wrong]
    assert not wrong, wrong[:5]  # pytest explains asserts in test modules only
    assert deliveries.seconds
    assert deliveries.at(0.5) < MEDIAN, deliveries.seconds
    assert max(deliveries.longest, alive.longest, ready.longest) < WORST
    assert through["connected"] > 0 or name == "idle connections"
