"""The state of Redis, and of the other processes as Redis knows it."""

from dataclasses import dataclass

from hookonce.receiver.dashboard.blueprint import DashboardContext
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.work_queue import WorkQueue
from hookonce.receiver.redis.workers import alive


@dataclass(frozen=True, slots=True)
class Servers:
    """`workers` alive and `pending` notifications are None where Redis does not answer."""

    workers: int | None
    pending: int | None
    breaker_is_open: bool


def servers(context: DashboardContext) -> Servers:
    """Return what Redis knows of the workers; it has a quarter of a second to answer."""
    is_open = context.intake.breaker.is_open
    try:
        with connect(context.settings.redis_url) as client:
            return Servers(alive(client), WorkQueue(client).pending(), is_open)
    except RedisUnavailable:
        return Servers(None, None, is_open)
