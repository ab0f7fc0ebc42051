"""How many notifications wait for a worker; without RQ, which a command that only counts them need not import."""

import redis

from hookonce.receiver.redis.answers import MAX_COUNT, whole_number
from hookonce.receiver.redis.client import asking

QUEUE = "hookonce"
KEY = f"rq:queue:{QUEUE}"
"""The Redis list of RQ's queue; its length is the number of notifications that no worker has taken yet."""


def pending(client: redis.Redis) -> int:
    """Return how many notifications no worker has taken yet. Raises `RedisUnavailable`."""
    with asking():
        return whole_number(client.llen(KEY), MAX_COUNT)
