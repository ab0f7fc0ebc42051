"""pgqueuer: jobs in PostgreSQL by asyncpg, its tables logged; ten are taken at a time, as it comes."""

import os
import sys
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.peers.jobs import AT_ONCE, IMPATIENT, NOTICED, WRITE

_WRITE = WRITE.replace("%s", "$1")


async def _main(count: int | None) -> None:
    async with asyncpg.create_pool(os.environ["PEER_POSTGRES_URL"], min_size=2, max_size=AT_ONCE + 2) as pool:
        driver = AsyncpgPoolDriver(pool)
        if count is not None:
            queries = Queries(driver)
            if not await queries.has_table("pgqueuer"):
                await queries.install()
            numbers = [str(each).encode() for each in range(1, count + 1)]
            await queries.enqueue(["job"] * count, numbers, [0] * count)
            return
        queuer = PgQueuer(driver)

        @queuer.entrypoint("job")
        async def job(taken: Job) -> None:
            await pool.execute(_WRITE, int(taken.payload or b""))

        soon = {"dequeue_timeout": timedelta(seconds=1), "heartbeat_timeout": timedelta(seconds=NOTICED)}
        await queuer.run(**(soon if IMPATIENT in os.environ else {}))


if __name__ == "__main__":
    uvloop.run(_main(int(sys.argv[2]) if sys.argv[1] == "fill" else None))
