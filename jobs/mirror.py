"""The mirror of a worker for RQ's tools: `rq info` and dashboards show its attempts, its dead runs and its counts.

Redis keys written here, once a second in one transaction, each with an expiry:

    rq:worker:<name>        of the worker: its state, its counts, its current job, its heartbeat
    rq:wip:<queue>          attempts older than a second, of all workers
    rq:failed:<queue>       the newest dead runs of the ledger, and nothing else
    rq:job:event-<id>-<handler>, rq:results:event-<id>-<handler>
    hookonce:mirror         which worker writes the dead runs next, until it expires

Nothing of it is read back. Scores are below 0, where RQ's clean-up finds nothing that has expired and so makes no
failure of the attempts of a worker that was killed: an entry leaves `rq:wip` when no worker has renewed it.
"""

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zlib import crc32

import redis
from redis.client import Pipeline
from rq.job import Job, JobStatus
from rq.results import Result
from rq.serializers import JSONSerializer
from rq.worker import BaseWorker, WorkerStatus

from hookonce.jobs.claimer import Claimer
from hookonce.receiver.ledger.database.engines import AWAY
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.ledger.stats import issues
from hookonce.receiver.ledger.stats.issues import DeadRun
from hookonce.receiver.processes.repeating import Repeating
from hookonce.receiver.redis.client import RedisUnavailable
from hookonce.receiver.redis.work_queue import REQUEUE

INTERVAL = timedelta(seconds=1)
MIRRORED_AFTER = timedelta(seconds=1)
"""The age from which an attempt is shown."""
GONE_AFTER = timedelta(seconds=10)
"""How long an attempt is shown that its worker does not renew."""
KEPT = timedelta(seconds=60)
"""How long jobs are kept that no worker renews."""
DEAD_INTERVAL = timedelta(seconds=2)
"""How often one of the workers reads the dead runs of the ledger, for all of them."""
MAX_DEAD = 1000
_TURN = "hookonce:mirror"
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_-]")
"""Characters that RQ takes in no id of a job."""


class _Shown(NamedTuple):
    """A job that is shown: an attempt under way, or a dead run with what it died of."""

    event: int
    handler: str
    cycle: int
    began: datetime | None
    ended: datetime | None = None
    error: str | None = None

    @property
    def job_id(self) -> str:
        handler = _NOT_IN_IDS.sub("_", self.handler)
        if handler != self.handler:  # another's name may be the same then
            handler += f"-{crc32(self.handler.encode()):08x}"
        return f"event-{self.event}-{handler}"


class Mirror(Repeating):
    """Mirrors one worker in a thread of its own, as long as the block lasts."""

    expected = (*AWAY, redis.RedisError, RedisUnavailable, OSError)

    def __init__(self, worker: BaseWorker, claimer: Claimer) -> None:
        super().__init__("mirror", INTERVAL, "the worker was not mirrored for RQ")
        self.worker = worker
        self._claimer = claimer
        self.queue = worker.queues[0]
        self._clock = time.time() - time.monotonic()
        self._renewed: dict[_Shown, float] = {}
        self._started: set[str] = set()
        self._is_dead_ours = False

    def at_end(self) -> None:
        """Write that nothing is under way."""
        self._is_dead_ours = False
        self._write([])

    def look(self) -> None:
        """Write what is under way, and in our turn the dead runs."""
        until = time.monotonic() - MIRRORED_AFTER.total_seconds()
        found = [at for slot in self._claimer.all_slots if (at := slot.under_way) is not None]
        attempts = [
            _Shown(
                at.run.event.id,
                at.run.handler,
                at.run.cycle,
                datetime.fromtimestamp(self._clock + at.began, UTC),
            )
            for at in found
            if at.began <= until
        ]
        self._write(attempts)

    def _write(self, attempts: Sequence[_Shown]) -> None:
        dead = None
        if self._is_dead_ours:
            self._is_dead_ours = False
            with self._claimer.lent() as connection:
                dead = [_shown(run) for run in issues.newest_dead_runs(connection, MAX_DEAD)]
        old = time.monotonic() - KEPT.total_seconds()
        self._renewed = {each: at for each, at in self._renewed.items() if at > old}
        with self.worker.connection.pipeline() as pipeline:
            pipeline.set(_TURN, self.worker.name, nx=True, px=DEAD_INTERVAL)
            self._write_worker(pipeline, attempts)
            self._write_started(pipeline, attempts)
            if dead is not None:
                self._write_dead(pipeline, dead)
            answers = pipeline.execute(raise_on_error=False)
        self._is_dead_ours = answers[0] is True

    def _write_worker(self, pipeline: Pipeline, attempts: Sequence[_Shown]) -> None:
        counts, slots = self._claimer.tally.counts, self._claimer.all_slots
        is_busy = any(slot.under_way is not None for slot in slots)
        self.worker.set_state(WorkerStatus.BUSY if is_busy else WorkerStatus.IDLE, pipeline)
        self.worker.set_current_job_id(attempts[0].job_id if attempts else None, pipeline)
        figures: dict[Any, Any] = {
            "successful_job_count": counts[RunStatus.DONE],
            "failed_job_count": counts[RunStatus.DEAD],
            "total_working_time": round(sum(slot.worked for slot in slots), 6),
        }
        pipeline.hset(self.worker.key, mapping=figures)
        self.worker.heartbeat(pipeline=pipeline)
        pipeline.sadd(self.queue.redis_queues_keys, self.queue.key)

    def _write_started(self, pipeline: Pipeline, attempts: Sequence[_Shown]) -> None:
        key, now = self.queue.started_job_registry.key, time.time()
        entries = {_entry(each): -now for each in attempts}
        if ended := self._started - entries.keys():
            pipeline.zrem(key, *ended)
        self._started = set(entries)
        for each in attempts:
            self._renew(pipeline, each, JobStatus.STARTED)
        if entries:
            pipeline.zadd(key, entries)
        pipeline.zremrangebyscore(key, f"({GONE_AFTER.total_seconds() - now}", "(0")
        pipeline.expire(key, GONE_AFTER)

    def _write_dead(self, pipeline: Pipeline, dead: Sequence[_Shown]) -> None:
        key = self.queue.failed_job_registry.key
        for gone in {each for each in self._renewed if each.ended} - set(dead):
            del self._renewed[gone]
            pipeline.delete(Job.key_for(gone.job_id), _results(gone.job_id))
        for each in dead:
            self._renew(pipeline, each, JobStatus.FAILED)
        pipeline.delete(key)
        if dead:
            pipeline.zadd(key, {each.job_id: -each.ended.timestamp() for each in dead if each.ended})
            pipeline.expire(key, KEPT)

    def _renew(self, pipeline: Pipeline, shown: _Shown, status: JobStatus) -> None:
        """Write a job, unless it was written not long ago."""
        now = time.monotonic()
        if now < self._renewed.get(shown, 0.0) + KEPT.total_seconds() / 3:
            return
        self._renewed[shown] = now
        job = Job.create(
            REQUEUE,
            args=[shown.event, shown.handler, shown.cycle],
            id=shown.job_id,
            origin=self.queue.name,
            connection=self.queue.connection,
            serializer=JSONSerializer,
            status=status,
            description=f"event {shown.event}, handler {shown.handler}, cycle {shown.cycle}",
        )
        job.started_at, job.ended_at = shown.began, shown.ended
        job.worker_name = self.worker.name if status is JobStatus.STARTED else None
        job.save(pipeline=pipeline, include_meta=False, include_result=False)
        pipeline.expire(job.key, KEPT)
        pipeline.delete(_results(job.id))
        if shown.error is not None:
            Result.create_failure(job, int(KEPT.total_seconds()), shown.error, pipeline=pipeline)


def _entry(shown: _Shown) -> str:
    """Return an entry of the registry of started jobs: a job, and which execution of it."""
    return f"{shown.job_id}:{shown.cycle}"


def _results(job_id: str) -> str:
    """Return the key of the stream in which RQ looks for the error of a job."""
    key: str = Result.get_key(job_id)  # type: ignore[no-untyped-call]
    return key


def _shown(run: DeadRun) -> _Shown:
    error = ", ".join(filter(None, [run.title or RunStatus.DEAD, f"issue {run.issue}" if run.issue else ""]))
    return _Shown(run.event, run.handler, run.cycle, run.started_at, run.finished_at, error)
