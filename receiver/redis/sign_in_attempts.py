"""Counts attempts to sign in to the dashboard, by network, for all receivers together.

Redis keys used here:

    hookonce:sign-in    a sorted set: a network, and when its attempts are forgotten (ms, by the clock of Redis)

An attempt is forgotten after `interval`, one after the other, so a network that waits long enough leaves the set. The
set is as large as it may be and no larger; those with the fewest attempts leave it first.
"""

from datetime import timedelta

import redis

from hookonce.receiver.redis.answers import whole_number
from hookonce.receiver.redis.client import asking, disconnect_if_replica

KEY = "hookonce:sign-in"
MAX_NETWORKS = 4096

_TAKE = """
-- KEYS: the sorted set. ARGV: network, interval (ms), attempts at once, most networks.
-- How long the network has to wait (ms); 0 if this attempt may be made, and is counted.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local over = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or now)
over = math.min(over, now + ARGV[3] * ARGV[2]) -- no network of ours owes more
local wait = over - now - (ARGV[3] - 1) * ARGV[2]
if wait > 0 then return wait end
redis.call('ZADD', KEYS[1], over + ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -ARGV[4] - 1)
redis.call('PEXPIRE', KEYS[1], ARGV[3] * ARGV[2])
return 0
"""


def take(client: redis.Redis, network: str, at_once: int, interval: timedelta) -> timedelta:
    """Count an attempt if it may be made now, and return zero; else return how long to wait.

    So many may be made `at_once`, then one every `interval`. Raises `RedisUnavailable`.
    """
    ms = interval // timedelta(milliseconds=1)
    with asking():
        try:
            wait: object = client.eval(_TAKE, 1, KEY, network, str(ms), str(at_once), str(MAX_NETWORKS))
        except redis.RedisError as error:
            disconnect_if_replica(client, error)
            raise
        return timedelta(milliseconds=whole_number(wait, ms))
