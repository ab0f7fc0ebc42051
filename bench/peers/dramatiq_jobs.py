"""Dramatiq on Redis, as it comes: acknowledged when done, a killed worker's come again.

Its worker: `dramatiq bench.peers.dramatiq_jobs`.
"""

import os
import sys

import dramatiq
from dramatiq.brokers.redis import MAINTENANCE_SCALE, RedisBroker

from bench.peers.jobs import IMPATIENT, NOTICED
from bench.peers.threads import write

_soon = {"heartbeat_timeout": NOTICED * 1000, "maintenance_chance": MAINTENANCE_SCALE}
broker = RedisBroker(url=os.environ["PEER_REDIS_URL"], **(_soon if IMPATIENT in os.environ else {}))
dramatiq.set_broker(broker)


@dramatiq.actor
def job(number: int) -> None:
    """Do the job."""
    write(number)


if __name__ == "__main__":
    for each in range(1, int(sys.argv[2]) + 1):
        job.send(each)
