"""procrastinate: jobs in PostgreSQL, asynchronous tasks, eight at once.

What a killed worker was at stays "doing" until somebody retries it: the periodic task is the one of its documentation.
"""

import asyncio
import os
import sys
from functools import cache

from procrastinate import App, JobContext, PsycopgConnector
from psycopg_pool import AsyncConnectionPool

from bench.peers.jobs import AT_ONCE, IMPATIENT, NOTICED, WRITE

_URL = os.environ["PEER_POSTGRES_URL"]
app = App(connector=PsycopgConnector(conninfo=_URL, min_size=2, max_size=AT_ONCE + 2))


@cache
def _pool() -> AsyncConnectionPool:
    return AsyncConnectionPool(_URL, min_size=AT_ONCE, kwargs={"autocommit": True}, open=False)


@app.task(name="job")
async def job(number: int) -> None:
    """Do the job."""
    async with _pool().connection() as connection:
        await connection.execute(WRITE, (number,))


if IMPATIENT in os.environ:

    @app.periodic(cron="* * * * * */1")
    @app.task(name="retry_stalled", queueing_lock="retry_stalled", pass_context=True)
    async def retry_stalled(_context: JobContext, timestamp: int) -> None:  # noqa: ARG001  procrastinate's signature
        """Give back what killed workers were at."""
        for stalled in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=NOTICED):
            await app.job_manager.retry_job(stalled)


async def _main(count: int | None) -> None:
    async with app.open_async():
        if count is not None:
            if not await app.check_connection_async():
                await app.schema_manager.apply_schema_async()
            await job.batch_defer_async(*({"number": each} for each in range(1, count + 1)))
            return
        async with _pool():
            soon = {"update_heartbeat_interval": NOTICED / 4, "stalled_worker_timeout": NOTICED}
            await app.run_worker_async(concurrency=AT_ONCE, **(soon if IMPATIENT in os.environ else {}))


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[2]) if sys.argv[1] == "fill" else None))
