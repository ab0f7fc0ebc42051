"""Who listens for the bell: RQ's register of workers in Redis. One that works without Redis is not in it."""

import logging

import redis
from rq import Queue
from rq.worker_registration import get_keys

from receiver.handoff import QUEUE, Bell
from receiver.window import connect

log = logging.getLogger(__name__)


def alive(client: redis.Redis) -> int:
    """Count the registered workers; a key is gone half a minute after its worker died. Raises: `redis.RedisError`."""
    keys = get_keys(Queue(QUEUE, connection=client))
    return int(client.exists(*keys)) if keys else 0


def ring(redis_url: str) -> None:
    """Tell the workers that something is due; without Redis the sweep finds it, seconds later. Raises nothing."""
    if not redis_url:
        return
    try:
        with connect(redis_url) as client:
            Bell(client).ring_if_quiet()
    except (redis.RedisError, OSError) as error:
        log.warning("the bell can't be rung (%s); the sweep finds what is due", type(error).__name__)
