"""The RQ worker: it answers notifications and nothing else that may lie in its queue.

It also looks into the ledger when there is none, so that a dead Redis adds latency and nothing else. It takes no
commands over pub/sub and knows no suspension; of RQ's loop it uses the registration and the heartbeat alone.
"""

import json
import logging
import signal
import threading
import time
import uuid
import zlib
from types import FrameType
from typing import Any, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from rq import SimpleWorker
from rq.job import Job
from rq.serializers import JSONSerializer
from rq.worker_registration import clean_worker_registry

from hookonce.jobs import drain, stopping
from hookonce.jobs.attempts.ports import Attempt
from hookonce.jobs.claimer import Claimer
from hookonce.jobs.mirror import Mirror
from hookonce.receiver.redis.bounded_socket import bounding
from hookonce.receiver.redis.client import RedisUnavailable, connect, ping
from hookonce.receiver.redis.client import client as redis_client
from hookonce.receiver.redis.pending import QUEUE
from hookonce.receiver.redis.work_queue import FUNCTION, MAX_IDS, REQUEUE

log = logging.getLogger(__name__)

LISTEN_TIMEOUT = 1
"""Seconds to wait for a notification before looking into the ledger."""
AWAY_PAUSE = 2.0
"""Seconds to leave Redis alone after it failed; the ledger is polled meanwhile."""
MAX_ANSWER = 4 * 1024**2
"""Bytes of an answer of Redis."""
_POLL = 0.25
MAX_ARGUMENT_BYTES = 64 * 1024
"""Bytes of a job's arguments; those of a notification have some hundreds."""
MAX_ID = 2**63 - 1
"""The largest id of an event: PostgreSQL's bigint."""
MAX_CYCLE = 2**31 - 1


class NotOurs(Exception):  # noqa: N818  a verdict about a job
    """The job is malformed, or asks for something other than a drain."""


class Requeued(NamedTuple):
    """A job that `rq requeue` has put into the queue: the dead run that it is to be a replay of."""

    event: int
    handler: str
    cycle: int


def read(data: bytes | None) -> list[int] | Requeued:
    """Return what a job asks for by its function and arguments: the ids of a notification, or a dead run.

    A program that writes to Redis could name any function in Python (`os.system`), a callback or a URL to post to:
    nothing else of a job is looked at, and its arguments are unpacked up to a limit. Raises `NotOurs`.
    """
    try:
        unpacking = zlib.decompressobj()
        function, instance, arguments, keywords = json.loads(
            unpacking.decompress(data or b"", MAX_ARGUMENT_BYTES)
        )
        if instance is None and keywords == {} and not unpacking.unconsumed_tail and unpacking.eof:
            if function == FUNCTION:
                return _ids(*arguments)
            if function == REQUEUE:
                return _requeued(*arguments)
    except Exception as error:  # noqa: BLE001  whatever a stranger wrote there
        raise NotOurs(f"a malformed job: {type(error).__name__}") from None
    raise NotOurs(f"a job that is not {FUNCTION}")


def _ids(ids: Any) -> list[int]:  # noqa: ANN401  JSON
    if type(ids) is list and len(ids) <= MAX_IDS and all(_is_number(n, MAX_ID) for n in ids):
        return ids
    raise ValueError("no ids")


def _requeued(event: Any, handler: Any, cycle: Any) -> Requeued:  # noqa: ANN401  JSON
    if _is_number(event, MAX_ID) and type(handler) is str and _is_number(cycle, MAX_CYCLE):
        return Requeued(event, handler, cycle)
    raise ValueError("no run")


def _is_number(value: Any, largest: int) -> bool:  # noqa: ANN401  JSON
    return type(value) is int and 0 < value <= largest


class Worker(SimpleWorker):
    """Listens for notifications and drains; `rq worker -w hookonce.jobs.worker.Worker hookonce` runs it too."""

    connection_timeout = LISTEN_TIMEOUT + 1
    """Seconds that a command waits for Redis; RQ itself would wait for half a minute."""

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401  RQ's signature
        self._claimer: Claimer | None = options.pop("claimer", None)
        super().__init__(*args, **options | {"serializer": JSONSerializer})
        self._is_listening = False
        self._cleaned_at = self._looked_at = time.monotonic()

    def work(self, burst: bool = False, *_args: Any, **options: Any) -> bool:  # noqa: ANN401, FBT001, FBT002  RQ's signature
        """Work until told to stop; with `burst` until the queue is empty. Raises what Redis raises that fails."""
        claimer = self._claimer = self._claimer or drain.process_claimer()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        most, longest = options.get("max_jobs"), options.get("max_idle_time")
        jobs, silent_since = 0, time.monotonic()
        self.register_birth()  # type: ignore[no-untyped-call]
        with Mirror(self, claimer):
            while not stopping.stopping.is_set() and jobs != (most or -1):
                if job := self._take(None if burst else claimer.longest_wait(LISTEN_TIMEOUT)):
                    self._perform(claimer, job)
                    jobs, silent_since = jobs + 1, time.monotonic()
                elif burst:
                    break
                if time.monotonic() > self._looked_at + (LISTEN_TIMEOUT if job else 0):
                    claimer.run_due()
                    self._looked_at = time.monotonic()
                if longest is not None and time.monotonic() - silent_since > longest:
                    break
                self._clean_up()
        self.register_death()  # type: ignore[no-untyped-call]
        return bool(jobs)

    def _take(self, wait: float | None) -> bytes | None:
        """Wait once for a job; a signal may cut this wait short and nothing else. Return the job's id."""
        key = self.queues[0].key
        try:
            self._is_listening = True
            if wait is None:
                taken: Any = self.connection.lpop(key)
            else:  # a batch that waits to be more may be due earlier; Redis takes parts of seconds
                found: Any = self.connection.blpop([key], wait)
                taken = found and found[1]
        except _Stopped:
            return None
        except redis.ResponseError:  # the queue is not a list, or Redis takes no writes
            if self.connection.type(key) not in {b"list", b"none"}:
                self.connection.delete(key)
            time.sleep(_POLL)
            return None
        finally:
            self._is_listening = False
        return taken if isinstance(taken, bytes) else None

    def _perform(self, claimer: Claimer, job_id: bytes) -> None:
        """Take a job out of Redis and do it. No registry of RQ's is kept of it: that costs more than a drain."""
        key = Job.redis_job_namespace_prefix.encode() + job_id
        with self.connection.pipeline(transaction=False) as pipeline:
            pipeline.hget(key, "data")
            pipeline.delete(key)
            data, _ = pipeline.execute(raise_on_error=False)
        try:
            asked = read(data if isinstance(data, bytes) else None)
        except NotOurs as error:
            log.info("dropped %s", error)
            return
        try:
            if isinstance(asked, Requeued):
                drain.on_requeued(claimer, *asked)
            else:
                drain.on_notification(claimer, asked)
        except Exception:
            log.exception("a claim failed")
        self._looked_at = time.monotonic()

    def _clean_up(self) -> None:
        """Forget workers that are no more, now and then."""
        if time.monotonic() > self._cleaned_at + self.maintenance_interval:
            self._cleaned_at = time.monotonic()
            clean_worker_registry(self.queues[0])

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002  a signal handler
        """Stop after the attempt under way; what was claimed besides is let go of."""
        if self._claimer is not None:
            _stop(self._claimer, signum)
        if self._is_listening:
            self._is_listening = False
            raise _Stopped


class _Stopped(Exception):  # noqa: N818  a signal
    """The wait for a job was cut short."""


def work(claimer: Claimer, redis_url: str, name: str | None = None) -> None:
    """Work until SIGTERM or SIGINT: by notifications while Redis answers, by polling the ledger while it does not."""
    claimer.requeue_ignored()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda signum, _: _stop(claimer, signum))
    with claimer.reporting():
        while not stopping.stopping.is_set():
            if _is_there(redis_url):
                _listen(claimer, redis_url, name)
            until = time.monotonic() + AWAY_PAUSE
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
        Worker(
            [QUEUE],
            name=name or uuid.uuid4().hex,
            connection=client,
            worker_ttl=35,
            maintenance_interval=30,
            claimer=claimer,
        ).work()
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
