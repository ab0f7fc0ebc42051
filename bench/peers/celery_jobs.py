"""Celery on Redis: tasks acknowledged late, so that a killed worker's come again; no results are kept.

Its worker: `celery -A bench.peers.celery_jobs worker`.
"""

import os
import sys
from urllib.parse import parse_qs, urlsplit

from celery import Celery

from bench.peers.jobs import IMPATIENT, NOTICED
from bench.peers.threads import write

_url = urlsplit(os.environ["PEER_REDIS_URL"])
app = Celery(
    "bench", broker=f"redis+socket://{_url.path}?virtual_host={parse_qs(_url.query).get('db', ['0'])[0]}"
)
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
)
if IMPATIENT in os.environ:
    app.conf.broker_transport_options = {
        "visibility_timeout": NOTICED,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    }


@app.task(name="job")
def job(number: int) -> None:
    """Do the job."""
    write(number)


if __name__ == "__main__":
    with app.producer_pool.acquire(block=True) as producer:
        for each in range(1, int(sys.argv[2]) + 1):
            job.apply_async((each,), producer=producer)
