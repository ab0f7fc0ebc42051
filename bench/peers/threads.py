"""The job's write for queues that run jobs in threads or processes: a connection for each, kept."""

import os
import threading

import psycopg

from bench.peers.jobs import WRITE

_own = threading.local()


def write(job: int) -> None:
    """Make the job's write and commit it."""
    if not hasattr(_own, "connection"):
        _own.connection = psycopg.connect(os.environ["PEER_POSTGRES_URL"], autocommit=True)
    _own.connection.execute(WRITE, (job,))
