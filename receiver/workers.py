"""Who listens for the bell: RQ's register of workers in Redis. One that works without Redis is not in it."""

import redis
from rq import Queue
from rq.worker_registration import get_keys

from receiver.handoff import QUEUE


def alive(client: redis.Redis) -> int:
    """Count the registered workers; a key is gone half a minute after its worker died. Raises: `redis.RedisError`."""
    keys = get_keys(Queue(QUEUE, connection=client))
    return int(client.exists(*keys)) if keys else 0
