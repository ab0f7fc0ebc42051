"""The RQ worker and job class that run only what is ours.

Whoever can write to Redis could otherwise name any function in Python (`os.system`) as a job, a callback or
a URL to post to. The worker also looks into the ledger when the bell is silent, so that a dead Redis adds
latency and nothing else, and it takes no commands over pub/sub.
"""

import logging
import signal
import time
from datetime import timedelta
from types import FrameType
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from rq import Queue, SimpleWorker
from rq.exceptions import DequeueTimeout, StopRequested
from rq.job import Job as RqJob
from rq.serializers import JSONSerializer

from jobs import drain
from receiver.handoff import FUNCTION, QUEUE

log = logging.getLogger(__name__)

LISTEN = 1
"""Seconds to wait for the bell before looking into the ledger."""
AWAY = timedelta(seconds=2)
"""How long to leave Redis alone after it failed; the ledger is polled meanwhile."""
_POLL = 0.25


class NotOurs(Exception):  # noqa: N818  a verdict about a job
    """The job is malformed, or asks for something other than a drain."""


class Job(RqJob):
    """A job that can be nothing but a ring of the bell."""

    def restore(self, raw_data: dict[Any, Any]) -> None:
        """Read the job from Redis. Raises `NotOurs` unless it is exactly what `receiver.handoff` writes."""
        try:
            super().restore(raw_data)
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
        if not isinstance(ids, list) or not all(type(n) is int for n in ids) or any(extras):
            raise NotOurs(f"a job that is not {FUNCTION}([ids])")


class Worker(SimpleWorker):
    """Listens for the bell and drains; `rq worker -w jobs.rq.Worker hookonce` runs it too."""

    job_class = Job

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  RQ's signature
        options |= {"job_class": Job, "serializer": JSONSerializer, "log_job_description": False}
        super().__init__(*args, **options)
        self._is_listening = False
        self.redis_failed = False

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[RqJob, Queue] | None:
        """Wait for the bell, looking into the ledger every `LISTEN`; None to stop working."""
        silent_since = time.monotonic()
        while not self._stop_requested:
            try:
                self.heartbeat()
                if self.should_run_maintenance_tasks:
                    self.run_maintenance_tasks()
                rung = self._listen(timeout)
            except NotOurs as error:
                log.warning("dropped %s", error)
                continue
            if rung is not None or timeout is None:
                return rung
            drain.process_drain().work()
            if max_idle_time is not None and time.monotonic() - silent_since > max_idle_time:
                return None
        return None

    def _listen(self, timeout: int | None) -> tuple[RqJob, Queue] | None:
        """Wait once for a job; a signal may cut this wait short and nothing else."""
        try:
            self._is_listening = True
            return Queue.dequeue_any(
                self.queues,
                None if timeout is None else LISTEN,
                connection=self.connection,
                job_class=Job,
                serializer=JSONSerializer,
            )
        except DequeueTimeout:
            return None
        except NotOurs as error:
            self._drop(getattr(error, "job_id", None))
            raise
        except redis.ResponseError as error:
            self._drop(getattr(error, "job_id", None))
            raise NotOurs("a job that is no hash") from None
        finally:
            self._is_listening = False

    def _drop(self, job_id: str | None) -> None:
        if job_id is None:  # the queue itself is not a list: nothing can be taken from it
            time.sleep(_POLL)
            return
        self.connection.lrem(self.queues[0].intermediate_queue_key, 0, job_id)
        self.connection.delete(RqJob.key_for(job_id))

    def execute_job(self, job: RqJob, queue: Queue) -> None:
        """Run the drain; whatever RQ's own bookkeeping raises on a strange job must not stop the worker."""
        try:
            super().execute_job(job, queue)
        except (redis.ConnectionError, redis.TimeoutError, StopRequested):
            raise
        except Exception as error:  # noqa: BLE001
            log.warning("RQ could not keep the books of a job: %s", type(error).__name__)

    def run_maintenance_tasks(self) -> None:
        """Let RQ tidy its registries, where a hostile entry must not stop the worker."""
        try:
            super().run_maintenance_tasks()  # type: ignore[no-untyped-call]
        except (redis.ConnectionError, redis.TimeoutError):
            raise
        except Exception as error:  # noqa: BLE001
            log.warning("RQ could not tidy up: %s", type(error).__name__)

    def request_stop(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002  a signal handler
        """Stop after the attempt under way; what was claimed besides is let go of."""
        drain.stopping.set()
        self._stop_requested = True
        if self._is_listening:
            self._is_listening = False
            raise StopRequested

    def subscribe(self) -> None:
        """Take no commands: kill, stop and shutdown come as signals."""

    def unsubscribe(self) -> None:
        """Undo nothing."""


def work(redis_url: str, name: str | None = None) -> None:
    """Work until SIGTERM or SIGINT, by the bell while Redis answers and by polling the ledger while it does not.

    Raises `ConfigError` and `HandlerError` before any work, if the configuration or the handlers are broken.
    """
    ledger = drain.process_drain()
    ledger.wake_ignored()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: drain.stopping.set())
    while not drain.stopping.is_set():
        client = redis.Redis.from_url(
            redis_url, socket_timeout=LISTEN + 2, socket_connect_timeout=1, retry=Retry(NoBackoff(), 0)
        )
        try:
            Worker([QUEUE], name=name, connection=client, worker_ttl=35, maintenance_interval=30).work(
                logging_level="WARNING"
            )
        except (redis.RedisError, OSError, NotOurs) as error:
            log.warning("Redis is away, polling the ledger: %s", type(error).__name__)
        until = time.monotonic() + AWAY.total_seconds()
        while not drain.stopping.is_set() and time.monotonic() < until:
            if not ledger.work():
                drain.stopping.wait(_POLL)
