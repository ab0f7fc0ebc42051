"""The handoff to the workers: RQ carries notifications, the ledger is the queue.

A job carries ids only, and its worker goes on with whatever else is due; so one notification is enough for any
number of events. Whether one is pending is the length of RQ's own queue: no flag that could leak. A notification
that is lost costs latency only, because the sweep finds what is due.

Redis keys used here: RQ's own, under `rq:` (the queue is `rq:queue:hookonce`).
"""

from collections.abc import Sequence
from datetime import timedelta

import redis
from rq import Queue
from rq.serializers import JSONSerializer

from hookonce.receiver.redis.client import RedisUnavailable, asking, disconnect_if_replica
from hookonce.receiver.redis.pending import QUEUE, pending

FUNCTION = "hookonce.jobs.drain.perform"
REQUEUE = "hookonce.jobs.drain.requeue"
"""The function of a job that shows a run (`jobs.mirror`): performed where `rq requeue` has put it into the queue."""
MAX_IDS = 100
JOB_TIMEOUT = timedelta(hours=2)


class WorkQueue:
    """Notifies RQ workers."""

    def __init__(self, client: redis.Redis) -> None:
        self._queue = Queue(QUEUE, connection=client, serializer=JSONSerializer)
        self._client = client

    @property
    def queue(self) -> str:
        """The Redis list whose length says how many notifications are pending."""
        return str(self._queue.key)

    def notify(self, ids: Sequence[int] = ()) -> None:
        """Put one job in the queue, naming events that are due; without any, the worker looks for itself.

        Raises `RedisUnavailable`.
        """
        try:
            with asking():
                pipeline = self._client.pipeline()  # else RQ goes to Redis twice
                self._queue.enqueue_call(
                    FUNCTION,
                    args=[list(ids[:MAX_IDS])],
                    timeout=int(JOB_TIMEOUT.total_seconds()),
                    result_ttl=0,
                    failure_ttl=3600,
                    description=FUNCTION,
                    pipeline=pipeline,
                )
                pipeline.execute()
        except RedisUnavailable as error:
            disconnect_if_replica(self._client, error.__cause__)
            raise

    def notify_if_idle(self) -> bool:
        """Notify unless a notification is pending already; return whether it did. Raises as `notify`.

        One that is pending is enough: whoever takes it and finds more than a batch notifies the next.
        """
        if self.pending():
            return False
        self.notify()
        return True

    def pending(self) -> int:
        """Return how many notifications nobody has taken yet. Raises `RedisUnavailable`."""
        return pending(self._client)
