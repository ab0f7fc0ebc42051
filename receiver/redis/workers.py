"""Who listens for notifications: RQ's register of workers in Redis. One that works without Redis is not in it."""

import logging

import redis
from rq import Queue
from rq.worker_registration import get_keys

from hookonce.receiver.redis.client import RedisUnavailable, asking, connect
from hookonce.receiver.redis.work_queue import QUEUE, WorkQueue

log = logging.getLogger(__name__)


def alive(client: redis.Redis) -> int:
    """Return how many workers are registered; a key is gone half a minute after its worker died.

    Raises `RedisUnavailable`.
    """
    with asking():
        keys = get_keys(Queue(QUEUE, connection=client))
        return int(client.exists(*keys)) if keys else 0


def notify(redis_url: str) -> None:
    """Notify the workers that something is due; without Redis the sweep finds it, seconds later. Raises nothing."""
    if not redis_url:
        return
    try:
        with connect(redis_url) as client:
            WorkQueue(client).notify_if_idle()
    except RedisUnavailable as error:
        log.warning("workers can't be notified (%s); the sweep finds what is due", error)
