"""Attacks at full rate, each for a moment, in plain and under TLS; `python -m tests.soak.attacks` takes its time.

Honest senders deliver meanwhile, and probes ask. The bounds are those of a machine that has other things to do.
"""

import contextlib

import pytest

from tests.http.conftest import serving
from tests.soak.attacks import measure
from tests.support.attacks import certificate
from tests.support.attacks.flood import ATTACKS

SECONDS = 1.5
MEDIAN, WORST = 0.25, 1.5
"""Seconds that a delivery waits; nearly all of the worst ones are the machine's."""


@pytest.fixture(scope="module", params=["plain", "tls"])
def server(request, fresh_database, fresh_redis, tmp_path_factory):
    directory = tmp_path_factory.mktemp("serve")
    options, context = certificate.made(directory) if request.param == "tls" else ((), None)
    with contextlib.ExitStack() as stack:
        database_url, redis_url = stack.enter_context(fresh_database()), stack.enter_context(fresh_redis())
        running = stack.enter_context(
            serving(
                directory,
                database_url,
                redis_url,
                max_body=25 * 1024 * 1024,
                options=options,
                context=context,
                HOOKONCE_LOG_LEVEL="WARNING",
            )
        )
        measure(running, "nobody", 1, context)  # it opens its connections
        [worker] = running.workers
        yield running
        assert running.workers == [worker], "the worker was replaced"
        assert "Traceback" not in running.logged()


@pytest.mark.parametrize("name", [name for name in ATTACKS if name != "nobody"])
def test_honest_senders_are_answered_beside(server, name):
    count = min(ATTACKS[name].count, 1000)

    deliveries, alive, ready, through = measure(server, name, SECONDS, server.context, count)

    assert deliveries.wrong + alive.wrong + ready.wrong == []
    assert deliveries.at(0.5) < MEDIAN, deliveries.seconds
    assert max(deliveries.longest, alive.longest, ready.longest) < WORST
    assert through["connected"] > 0 or name == "idle connections"
