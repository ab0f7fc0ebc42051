"""What Redis says of the other processes, and what this one thinks of Redis."""

from dataclasses import dataclass

import redis

from receiver.admin.shell import Desk
from receiver.handoff import Bell
from receiver.window import connect
from receiver.workers import alive


@dataclass(frozen=True, slots=True)
class Servers:
    """`workers` alive and `rings` that wait are None where Redis does not answer."""

    workers: int | None
    rings: int | None
    breaker_is_open: bool


def servers(desk: Desk) -> Servers:
    """Ask Redis, which has a quarter of a second."""
    is_open = desk.intake.breaker.is_open
    try:
        with connect(desk.settings.redis_url) as client:
            return Servers(alive(client), Bell(client).waiting(), is_open)
    except (redis.RedisError, OSError):
        return Servers(None, None, is_open)
