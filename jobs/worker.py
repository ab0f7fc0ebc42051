"""The RQ worker: it answers notifications and nothing else that may lie in its queue.

It also looks into the ledger when there is none, so that a dead Redis adds
latency and nothing else, and it takes no commands over pub/sub.
"""

import logging
import signal
import threading
import time
import zlib
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

from hookonce.jobs import drain, stopping
from hookonce.jobs.attempts.ports import Attempt
from hookonce.jobs.claimer import Claimer
from hookonce.receiver.redis.bounded_socket import bounding
from hookonce.receiver.redis.client import RedisUnavailable, connect, ping
from hookonce.receiver.redis.client import client as redis_client
from hookonce.receiver.redis.work_queue import FUNCTION, MAX_IDS, QUEUE

log = logging.getLogger(__name__)

LISTEN_TIMEOUT = 1
"""Seconds to wait for a notification before looking into the ledger."""
AWAY_PAUSE = timedelta(seconds=2)
"""How long to leave Redis alone after it failed; the ledger is polled meanwhile."""
MAX_ANSWER = 4 * 1024**2
"""Bytes of an answer of Redis; the longest is a book of RQ's."""
MAX_BOOKS = 10_000
"""Entries in one of RQ's books; a worker makes one at a time, so more are a stranger's."""
_POLL = 0.25
MAX_ARGUMENT_BYTES = 64 * 1024
"""Bytes of a notification's arguments; ours have some hundreds."""
MAX_ID = 2**63 - 1
"""Of an event: PostgreSQL's bigint."""
_UNREAD = {b"result", b"exc_info", b"meta"}


class NotOurs(Exception):  # noqa: N818  a verdict about a job
    """The job is malformed, or asks for something other than a drain."""


class Job(RqJob):
    """A job that can be nothing but a notification.

    A program that writes to Redis could otherwise name any function in Python (`os.system`) as a job, a callback or a
    URL to post to.
    """

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


class Worker(SimpleWorker):
    """Listens for notifications and drains; `rq worker -w hookonce.jobs.worker.Worker hookonce` runs it too."""

    job_class = Job

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  RQ's signature
        self._claimer: Claimer = options.pop("claimer", None) or drain.process_claimer()
        options |= {"job_class": Job, "serializer": JSONSerializer, "log_job_description": False}
        super().__init__(*args, **options)
        self._is_listening = False
        self._looked_at = time.monotonic()
        self._redis_failed = False

    def dequeue_job_and_maintain_ttl(
        self, timeout: int | None, max_idle_time: int | None = None
    ) -> tuple[RqJob, Queue] | None:
        """Wait for a notification, looking into the ledger every `LISTEN_TIMEOUT`; None to stop working."""
        silent_since = time.monotonic()
        while not (self._stop_requested or stopping.stopping.is_set()):  # told before it was RQ that listened
            try:
                self.heartbeat()
                if self.should_run_maintenance_tasks:
                    self.run_maintenance_tasks()
                job = self._take_job(timeout)
            except NotOurs as error:
                log.info("dropped %s", error)
                if time.monotonic() - self._looked_at > LISTEN_TIMEOUT:
                    self._poll_ledger()  # junk without end must not hold up events
                continue
            except (redis.ConnectionError, redis.TimeoutError):
                self._redis_failed = True
                raise
            if job is not None or timeout is None:
                return job
            self._poll_ledger()
            if max_idle_time is not None and time.monotonic() - silent_since > max_idle_time:
                return None
        return None

    def _poll_ledger(self) -> None:
        """Look into the ledger, whoever notifies."""
        self._claimer.run_due()
        self._looked_at = time.monotonic()

    def _take_job(self, timeout: int | None) -> tuple[RqJob, Queue] | None:
        """Wait once for a job; a signal may cut this wait short and nothing else.

        Raises `NotOurs` for anything else that is taken from the queue; RQ would go on with the next by itself,
        and so not come back before a flood of junk is over.
        """
        queue, job_id = self.queues[0], None
        try:
            self._is_listening = True
            # A batch that waits to be more may be due earlier; Redis takes parts of seconds.
            wait: Any = None if timeout is None else self._claimer.longest_wait(LISTEN_TIMEOUT)
            taken = Queue.lmove(self.connection, queue.key, wait)
            if taken is None:
                return None
            job_id = taken[1]
            return Job.fetch(job_id.decode(), connection=self.connection, serializer=JSONSerializer), queue
        except DequeueTimeout:
            return None
        except (redis.ConnectionError, redis.TimeoutError, StopRequested):
            raise
        except Exception as error:  # noqa: BLE001  whatever a stranger put into the queue, or in its place
            self._drop(job_id)
            raise NotOurs(f"what is not a notification: {type(error).__name__}") from None
        finally:
            self._is_listening = False

    def _drop(self, job_id: bytes | None) -> None:
        if job_id is None:  # no job at all: the queue is not a list, or Redis takes no writes
            self._drop_what_is_no_queue()
            return
        self.connection.lrem(self.queues[0].intermediate_queue_key, 0, job_id)  # type: ignore[arg-type]  # bytes do
        self.connection.delete(RqJob.redis_job_namespace_prefix.encode() + job_id)

    def _drop_what_is_no_queue(self) -> None:
        queue = self.queues[0]
        for key in (queue.key, queue.intermediate_queue_key):
            if self.connection.type(key) not in {b"list", b"none"}:
                self.connection.delete(key)
        time.sleep(_POLL)

    def execute_job(self, job: RqJob, queue: Queue) -> None:
        """Take the notification out of Redis and drain.

        RQ's books of a job are not kept: they cost more than a drain, a worker that dies leaves them behind,
        and each line of them waits for a Redis that hangs.
        """
        try:
            with self.connection.pipeline(transaction=False) as books:
                books.lrem(queue.intermediate_queue_key, 0, job.id)
                books.delete(job.key)
                self.heartbeat(self.get_heartbeat_ttl(job), books)
                books.execute(raise_on_error=False)
        except redis.RedisError as error:
            log.warning("a notification stays in Redis: %s", type(error).__name__)
        try:
            drain.on_notification(self._claimer, job.args[0])
        except Exception:
            log.exception("a claim failed")
        self._looked_at = time.monotonic()

    @property
    def connection_timeout(self) -> int:
        """Seconds that RQ's client waits for Redis; RQ itself would wait for half a minute, per command."""
        return LISTEN_TIMEOUT + 1

    def run_maintenance_tasks(self) -> None:
        """Let RQ tidy its registries, where a hostile entry must not stop the worker."""
        try:
            self._drop_endless_books()
            super().run_maintenance_tasks()  # type: ignore[no-untyped-call]
        except (redis.ConnectionError, redis.TimeoutError):
            raise
        except Exception as error:  # noqa: BLE001
            log.warning("RQ could not tidy up: %s", type(error).__name__)

    def _drop_endless_books(self) -> None:
        """Delete books that nobody could go through: we need none of them."""
        queue, client = self.queues[0], self.connection
        if client.llen(queue.intermediate_queue_key) > MAX_BOOKS:
            client.delete(queue.intermediate_queue_key)
        for registry in (
            queue.started_job_registry,
            queue.finished_job_registry,
            queue.failed_job_registry,
            queue.deferred_job_registry,
        ):
            if client.zcard(registry.key) > MAX_BOOKS:
                client.delete(registry.key)

    def check_for_suspension(self, burst: bool) -> None:  # noqa: FBT001  RQ's signature
        """Go on: `hookonce pause` is how events are made to wait, and a key in Redis is not."""

    def register_death(self) -> None:
        """Sign off, unless Redis has just failed: its timeout would be time lost for the ledger."""
        if not self._redis_failed:
            super().register_death()  # type: ignore[no-untyped-call]

    def request_stop(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002  a signal handler
        """Stop after the attempt under way; what was claimed besides is let go of."""
        _stop(self._claimer, signum)
        self._stop_requested = True
        if self._is_listening:
            self._is_listening = False
            raise StopRequested

    def subscribe(self) -> None:
        """Take no commands: kill, stop and shutdown come as signals."""

    def unsubscribe(self) -> None:
        """Undo nothing."""


def work(claimer: Claimer, redis_url: str, name: str | None = None) -> None:
    """Work until SIGTERM or SIGINT: by notifications while Redis answers, by polling the ledger while it does not."""
    claimer.requeue_ignored()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda signum, _: _stop(claimer, signum))
    with claimer.reporting():
        while not stopping.stopping.is_set():
            if _is_there(redis_url):
                _listen(claimer, redis_url, name)
            until = time.monotonic() + AWAY_PAUSE.total_seconds()
            while not stopping.stopping.is_set() and time.monotonic() < until:
                if not claimer.run_due():
                    stopping.stopping.wait(_POLL)


def _stop(claimer: Claimer, signum: int) -> None:
    """Hear a signal to stop; if an attempt is under way in the main thread, say that it is waited for."""
    if stopping.tell(signum) and (at := claimer.under_way):
        # In a thread: the signal may have come in the middle of a line that is being written.
        threading.Thread(target=_say_what_is_waited_for, args=[at]).start()


def _say_what_is_waited_for(at: Attempt) -> None:
    log.warning(
        "waiting for event %d (handler %s) before it stops; killed, it is run again, alone",
        at.run.event.id,
        at.run.handler,
    )


def _listen(claimer: Claimer, redis_url: str, name: str | None) -> None:
    """Be an RQ worker until told to stop, or until Redis fails."""
    client = redis_client(
        redis_url,
        socket_timeout=LISTEN_TIMEOUT + 1,
        socket_connect_timeout=1,
        redis_connect_func=bounding(LISTEN_TIMEOUT + 1, MAX_ANSWER),
        retry=Retry(NoBackoff(), 0),
    )
    try:
        listening = Worker(
            [QUEUE], name=name, connection=client, worker_ttl=35, maintenance_interval=30, claimer=claimer
        )
        listening.work(logging_level="WARNING")
    except Exception as error:  # noqa: BLE001  whatever Redis says (that there is a worker of our name): the ledger is polled
        log.warning("Redis is away, polling the ledger: %s", type(error).__name__)


def _is_there(redis_url: str) -> bool:
    """Ask Redis with the receiver's short patience: an RQ worker would wait for seconds, again and again."""
    try:
        with connect(redis_url) as client:
            return ping(client)
    except RedisUnavailable as error:
        log.warning("Redis is away, polling the ledger: %s", error)
        return False
