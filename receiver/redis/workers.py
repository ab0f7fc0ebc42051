"""Workers that listen for notifications: RQ's register in Redis. One that works without Redis is not in it."""

import logging

import redis
from rq import Queue
from rq.worker_registration import WORKERS_BY_QUEUE_KEY, get_keys

from hookonce.receiver.redis.answers import whole_number
from hookonce.receiver.redis.client import RedisUnavailable, asking, connect
from hookonce.receiver.redis.pending import QUEUE
from hookonce.receiver.redis.work_queue import WorkQueue

log = logging.getLogger(__name__)


MAX_WORKERS = 5000
"""The most that are counted; a longer register is a stranger's, and is not read."""


def alive(client: redis.Redis) -> int:
    """Return how many workers are registered; a key is gone half a minute after its worker died.

    Raises `RedisUnavailable`.
    """
    with asking():
        registered = whole_number(client.scard(WORKERS_BY_QUEUE_KEY % QUEUE), MAX_WORKERS + 1)
        if registered > MAX_WORKERS:
            return MAX_WORKERS
        keys = get_keys(Queue(QUEUE, connection=client))
        return whole_number(client.exists(*keys), len(keys)) if keys else 0


def notify(redis_url: str) -> None:
    """Notify the workers that something is due; without Redis the sweep finds it, seconds later. Raises nothing."""
    if not redis_url:
        return
    try:
        with connect(redis_url) as client:
            WorkQueue(client).notify_if_idle()
    except RedisUnavailable as error:
        log.warning("workers can't be notified (%s); the sweep finds what is due", error)
