"""A worker that is started while PgBouncer has no server to give waits for one, and then works."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hookonce.receiver.dev.embedded import Postgres
from hookonce.receiver.ledger.database import connections, migrate
from hookonce.receiver.ledger.store import store
from tests.support.new_event import new_event
from tests.support.pooler import PGBOUNCER, pooling
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
SECONDS = 60
AWAY = 4
"""Seconds without a server: PgBouncer then answers that its login has failed, for `server_login_retry`."""


@pytest.mark.long
@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
def test_worker_that_is_started_while_a_pooler_has_no_server_waits_for_it(
    data_directory, redis_url, tmp_path
):
    postgres = Postgres.start(data_directory, durable=False)
    migrate.upgrade(postgres.url)
    with connections.connect(postgres.url) as connection:
        store(connection, [new_event("a")])
    with pooling(postgres.url, data_directory) as url:
        postgres.kill()
        until(lambda: not answers(url))
        environ = {
            "DATABASE_URL": url,
            "REDIS_URL": redis_url,
            "HOOKONCE_HANDLERS": "",
            "PYTHONPATH": str(ROOT),
        }
        worker = subprocess.Popen(
            [sys.executable, "-m", "hookonce.receiver.cli", "worker"], cwd=tmp_path, env=os.environ | environ
        )
        try:
            time.sleep(AWAY)
            assert worker.poll() is None
            postgres.restart()
            until(
                lambda: statuses(postgres.url),
                ["ignored"],
                seconds=SECONDS,
                process=worker,
                away=connections.LedgerUnavailable,
            )
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.wait(SECONDS)
    postgres.stop()


def answers(url):
    try:
        with connections.connect(url) as connection:
            connection.execute("SELECT 1")
    except Exception:  # noqa: BLE001  in whatever way
        return False
    return True


def statuses(url):
    with connections.connect(url) as connection:
        return [row[0] for row in connection.execute("SELECT status FROM hookonce.event_states")]
