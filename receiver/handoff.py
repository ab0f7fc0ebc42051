"""The bell: RQ is the doorbell, the ledger is the queue.

A job carries ids only, and its worker goes on with whatever else is due; so one ring is enough for any
number of events. The bell is the queue's own length: no flag that could leak. A ring that is lost costs
latency only, because the sweep finds what is due.

Redis keys used here: RQ's own, under `rq:` (the queue is `rq:queue:hookonce`).
"""

from collections.abc import Sequence
from datetime import timedelta

import redis
from rq import Queue
from rq.serializers import JSONSerializer

from receiver.redis_url import leave_replica

QUEUE = "hookonce"
FUNCTION = "jobs.perform"
MOST_IDS = 100
JOB_TIMEOUT = timedelta(hours=2)


class Bell:
    """Rings for RQ workers."""

    def __init__(self, client: redis.Redis) -> None:
        self._queue = Queue(QUEUE, connection=client, serializer=JSONSerializer)
        self._client = client

    @property
    def queue(self) -> str:
        """The Redis list whose length says how many rings wait."""
        return str(self._queue.key)

    def ring(self, ids: Sequence[int] = ()) -> None:
        """Put one job in the queue, naming events that are due (or none: look for yourself).

        Raises `redis.RedisError` or `OSError`.
        """
        try:
            self._queue.enqueue_call(
                FUNCTION,
                args=[list(ids[:MOST_IDS])],
                timeout=int(JOB_TIMEOUT.total_seconds()),
                result_ttl=0,
                failure_ttl=3600,
                description=FUNCTION,
            )
        except redis.ResponseError as error:
            leave_replica(self._client, error)
            raise

    def ring_if_quiet(self) -> bool:
        """Ring unless a ring waits already; tell whether it rang. Raises as `ring`.

        One that waits is enough: whoever takes it and finds more than a batch rings for the next.
        """
        if self.waiting():
            return False
        self.ring()
        return True

    def waiting(self) -> int:
        """Count the rings nobody has answered yet."""
        return int(self._client.llen(self._queue.key))
