"""Notifies the workers for a command; what `receiver.cli.connections` calls, apart because few commands need Redis."""

from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.work_queue import WorkQueue


def notify_workers(url: str) -> None:
    """Notify the workers that something is due; where that fails, say why on stderr."""
    try:
        with connect(url) as client:
            WorkQueue(client).notify_if_idle()
    except RedisUnavailable as error:
        tell(f"workers can't be notified ({error}); the sweep finds what is due")
