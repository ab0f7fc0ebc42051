"""The RQ job class that can be nothing but a notification.

Whoever can write to Redis could otherwise name any function in Python (`os.system`) as a job, a callback or
a URL to post to.
"""

import zlib
from typing import Any

from rq.job import Job as RqJob

from hookonce.receiver.redis.work_queue import FUNCTION, MAX_IDS

MAX_ARGUMENT_BYTES = 64 * 1024
"""Bytes of a notification's arguments; ours have some hundreds."""
MAX_ID = 2**63 - 1
"""Of an event: PostgreSQL's bigint."""
_UNREAD = {b"result", b"exc_info", b"meta"}


class NotOurs(Exception):  # noqa: N818  a verdict about a job
    """The job is malformed, or asks for something other than a drain."""


class Job(RqJob):
    """A job that can be nothing but a notification."""

    def restore(self, raw_data: dict[Any, Any]) -> None:
        """Read the job from Redis. Raises `NotOurs` unless it is exactly what `receiver.redis.work_queue` writes."""
        try:
            super().restore(_bounded(raw_data))
            ids = self.args[0] if self.func_name == FUNCTION and len(self.args) == 1 else None
        except Exception as error:  # noqa: BLE001  whatever a stranger wrote there
            raise NotOurs(f"a malformed job: {type(error).__name__}") from None
        extras = (
            self.kwargs,
            self.webhooks,
            self._success_callback_name,
            self._failure_callback_name,
            self._stopped_callback_name,
            self.repeats_left,
            self.retries_left,
            self._dependency_ids,
        )
        if not isinstance(ids, list) or not all(type(n) is int and 0 < n <= MAX_ID for n in ids):
            raise NotOurs(f"a job that is not {FUNCTION}([ids])")
        if len(ids) > MAX_IDS or any(extras):
            raise NotOurs(f"a job that is not {FUNCTION}([ids])")


def _bounded(raw: dict[Any, Any]) -> dict[Any, Any]:
    """Leave out what a notification lacks, and unpack its arguments up to a limit: a bomb would end the worker."""
    data = raw.get(b"data", b"")
    unpacking = zlib.decompressobj()
    if data:
        data = unpacking.decompress(data, MAX_ARGUMENT_BYTES)
    if unpacking.unconsumed_tail or not unpacking.eof:
        raise NotOurs("a job too large to be a notification")
    return {field: value for field, value in raw.items() if field not in _UNREAD} | {
        b"data": zlib.compress(data)
    }
