"""The figures: what each is, where it is aimed, and in which order they are shown."""

from typing import NamedTuple


class Figure(NamedTuple):
    """One figure. `floor` and `aim` are None where there is no target; `is_better_low` for times and memory.

    `cpu` is the figure of the CPU that each event of a rate costs those who serve or handle it, servers left out: on a
    shared machine that is far steadier than the rate.
    """

    name: str
    title: str
    unit: str = "/s"
    floor: float | None = None
    aim: float | None = None
    is_better_low: bool = False
    cpu: str = ""

    def verdict(self, value: float) -> str:
        """Say whether a value reaches the aim, the floor, or neither; nothing without a target."""
        if self.floor is None or self.aim is None:
            return ""
        for word, mark in (("aim", self.aim), ("floor", self.floor)):
            if value <= mark if self.is_better_low else value >= mark:
                return word
        return "missed"


TARGETS = (
    Figure("new_to_starlette", "new events ÷ Starlette and asyncpg, sixty lines", "times", 1.4, 1.9),
    Figure("new_to_empty", "new events ÷ empty Flask route", "", 0.85, 1.0),
    Figure("duplicates_to_empty", "duplicates ÷ empty Flask route", "", 1.3, 1.8),
    Figure("cpu_receiver_us", "CPU per new event: receiver", "µs", 150, 100, is_better_low=True),
    Figure("new_to_obvious", "new events ÷ the obvious way", "times", 5.5, 8.0),
    Figure("done_to_obvious", "accept to done at full load ÷ the obvious way", "times", 6.0, 10.0),
    Figure("drain_rate", "drain of a backlog, one worker process", "/s", 1000, 2000, cpu="cpu_worker_us"),
    Figure(
        "slots_rate",
        "drain of a backlog, one worker process with eight slots",
        "/s",
        1500,
        2000,
        cpu="cpu_slots_us",
    ),
    Figure(
        "waiting_rate",
        "handlers that wait 200 ms, 64 slots in one process",
        "/s",
        250,
        300,
        cpu="cpu_waiting_us",
    ),
    Figure(
        "batch_drain_rate",
        "drain of a backlog by a handler of batches, one upsert of 500",
        "/s",
        8000,
        15000,
        cpu="batch_cpu_worker_us",
    ),
    Figure("jobs_to_durable", "jobs/s ÷ the faster of procrastinate and pgqueuer", "times", 1.0, 1.5),
    Figure(
        "batch_to_durable",
        "jobs/s in batches ÷ the faster of procrastinate and pgqueuer",
        "times",
        1.0,
        1.5,
    ),
    Figure("one_to_pgqueuer", "one at a time ÷ pgqueuer", "times", 0.85, 1.1),
    Figure("eight_to_pgqueuer", "with eight slots ÷ pgqueuer", "times", 0.85, 1.1),
    Figure("worker_postgres_wal_bytes", "WAL per handled event", "bytes", 1050, 900, is_better_low=True),
    Figure("done_p50_ms", "accept to done at 50 events/s, p50", "ms", 6, 4, is_better_low=True),
    Figure("done_p99_ms", "accept to done at 50 events/s, p99", "ms", 15, 10, is_better_low=True),
    Figure("answer_p99_ms", "answer at 70 % of peak, p99", "ms", 25, 15, is_better_low=True),
    Figure(
        "torrent_p99_ms",
        "answer at 70 % of peak while one connection torrents, p99",
        "ms",
        250,
        60,
        is_better_low=True,
    ),
    Figure("redis_down_to_up", "new events with Redis down ÷ with Redis", "", 0.8, 1.0),
    Figure("receiver_peak_mb", "peak memory of a gunicorn worker", "MB", 110, 90, is_better_low=True),
    Figure(
        "attacked_failed", "honest deliveries without a 2xx beside ten attacks", "", 0, 0, is_better_low=True
    ),
    Figure("attacked_longest_ms", "the longest answer to one of them", "ms", 250, 100, is_better_low=True),
    Figure(
        "attacked_peak_mb",
        "peak memory of a gunicorn worker after ten attacks",
        "MB",
        256,
        170,
        is_better_low=True,
    ),
    Figure("worker_peak_mb", "peak memory of an RQ worker", "MB", 110, 90, is_better_low=True),
    Figure(
        "receiver_growth_mb", "growth of a gunicorn worker over the last half", "MB", 2, 0, is_better_low=True
    ),
    Figure("worker_growth_mb", "growth of an RQ worker over the last half", "MB", 2, 0, is_better_low=True),
    Figure("fair_p99_ms", "instant handler beside a slow one, p99", "ms", 2000, 2000, is_better_low=True),
    Figure("beside_put_off_p50", "beside a million put off ÷ quiet, p50", "", 1.5, 1.1, is_better_low=True),
    Figure(
        "beside_slow_p50",
        "beside a million for a slow handler ÷ quiet, p50",
        "",
        1.5,
        1.1,
        is_better_low=True,
    ),
    Figure(
        "beside_rated_p50",
        "beside 100,000 that a rate lets wait ÷ quiet, p50",
        "",
        1.5,
        1.1,
        is_better_low=True,
    ),
    Figure("snapshot_to_quiet", "a burst under a snapshot, a minute at 500/s ÷ quiet", "", 0.8, 0.95),
    Figure("batch_ms", "10,000 events in one delivery, answer", "ms", 400, 250, is_better_low=True),
    Figure("batch_mb", "memory that 10,000 events in one delivery take", "MB", 100, 60, is_better_low=True),
)
GROWTH = (
    Figure("growth_ingest", "ingest at 5 million rows ÷ at none", "", 0.85, 0.95),
    Figure("growth_ingest_dropping", "the same, a day of bodies dropped meanwhile", "", 0.75, 0.90),
    Figure("growth_rows", "rows loaded", "rows"),
    Figure("growth_load_seconds", "loading them took", "s"),
    Figure("growth_empty_rate", "new events, empty ledger", cpu="growth_empty_cpu_us"),
    Figure("growth_full_rate", "new events, full ledger", cpu="growth_cpu_us"),
    Figure("growth_dropping_rate", "new events while bodies are dropped", cpu="growth_dropping_cpu_us"),
    Figure("growth_ingest_beside_sweep", "ingest at 5 million rows while the sweep prunes ÷ at none", ""),
    Figure("growth_pruned_by_sweep", "ledger rows the sweep prunes meanwhile"),
    Figure("growth_ingest_beside_command", "the same beside `hookonce prune`", ""),
    Figure("growth_pruned_by_command", "ledger rows `hookonce prune` prunes meanwhile"),
    Figure("growth_list_ms", "`events list` on the full ledger, with different filters", "ms"),
    Figure("growth_list_worst_ms", "the slowest of these listings", "ms", 400, 400, is_better_low=True),
    Figure("growth_newest_ms", "the newest fifty of a status, different ones", "ms"),
    Figure("growth_newest_worst_ms", "the slowest of these statuses", "ms", 10, 2, is_better_low=True),
    Figure("growth_start_ms", "of a listing, what `events list --help` takes", "ms"),
    Figure("growth_scrape_ms", "/metrics on the full ledger", "ms", 100, 100, is_better_low=True),
    Figure("growth_page_ms", "first byte of a dashboard page, different ones", "ms"),
    Figure("growth_page_worst_ms", "the slowest of these pages", "ms", 100, 100, is_better_low=True),
    Figure("growth_ledger_bytes", "events and runs with their indexes, per event", "bytes"),
    Figure("growth_index_bytes", "of these, the indexes", "bytes"),
    Figure("growth_body_bytes", "a body of 1.2 KB with its index", "bytes"),
    Figure("growth_empty_wal_bytes", "WAL per new event, empty ledger", "bytes"),
    Figure("growth_wal_bytes", "WAL per new event, full ledger", "bytes"),
    Figure(
        "growth_fresh_wal_bytes",
        "the same, right after a checkpoint",
        "bytes",
        5000,
        4000,
        is_better_low=True,
    ),
    Figure("growth_random_wal_bytes", "the same, where ids are random", "bytes"),
    Figure(
        "growth_disturbed",
        "pairs left out, since the disk was another in one half than in the other",
        "pairs",
    ),
    Figure("growth_empty_disk_ms", "a flush to disk beside the empty ledger", "ms"),
    Figure("growth_full_disk_ms", "a flush to disk beside the full ledger", "ms"),
)
CONTENDERS = {
    "one": "hookonce, one at a time",
    "eight": "hookonce, `--concurrency 8`",
    "batch": "hookonce, `@on_batch` of 500",
    "procrastinate": "procrastinate, eight at once",
    "pgqueuer": "pgqueuer, as it comes",
    "celery": "Celery on Redis, `acks_late`, eight threads",
    "dramatiq": "Dramatiq on Redis, eight threads",
}
"""At the same job, one worker each: part of a figure's name, and its title."""
JOBS = tuple(
    Figure(
        f"jobs_{name}_{what}",
        f"{title}: {said}",
        unit,
        cpu=f"jobs_{name}_worker_us" if what == "rate" else "",
    )
    for name, title in CONTENDERS.items()
    for what, said, unit in (
        ("rate", "jobs", "/s"),
        ("cpu_us", "CPU per job, worker and servers", "µs"),
        ("worker_us", "of that, the worker", "µs"),
        ("postgres_us", "of that, PostgreSQL", "µs"),
        ("doubled", "done twice after five kills", "jobs"),
        ("lost", "lost by five kills", "jobs"),
    )
)
RATES = (
    Figure("empty_rate", "empty Flask route", cpu="cpu_empty_us"),
    Figure("raw_read_rate", "plain WSGI that reads the delivery", cpu="cpu_raw_read_us"),
    Figure("flask_read_rate", "Flask that reads the delivery", cpu="cpu_flask_read_us"),
    Figure("new_rate", "new events", cpu="cpu_receiver_us"),
    Figure("duplicates_rate", "duplicates inside the window", cpu="cpu_duplicates_us"),
    Figure("redis_down_rate", "new events, Redis down", cpu="cpu_redis_down_us"),
    Figure("starlette_rate", "Starlette and asyncpg, sixty lines, new events", cpu="cpu_starlette_us"),
    Figure("system_new_rate", "on the system's PostgreSQL, new events", cpu="system_cpu_receiver_us"),
    Figure("obvious_rate", "the obvious way, new events", cpu="cpu_obvious_us"),
    Figure("peer_fastapi_rate", "FastAPI and SQLAlchemy on uvicorn, new events", cpu="peer_fastapi_cpu_us"),
    Figure(
        "peer_djstripe_rate",
        "dj-stripe on Django and gunicorn, new events of Stripe",
        cpu="peer_djstripe_cpu_us",
    ),
    Figure("done_rate", "accept to done at full load, two workers", cpu="cpu_done_us"),
    Figure("obvious_done_rate", "the obvious way, accept to done", cpu="cpu_obvious_done_us"),
    Figure("wrk_empty_rate", "empty Flask route, by wrk", cpu="cpu_wrk_empty_us"),
    Figure("wrk_new_rate", "new events, by wrk", cpu="cpu_wrk_new_us"),
    Figure("new_rate_1_receivers", "new events, 1 gunicorn worker", cpu="cpu_1_receivers_us"),
    Figure("new_rate_2_receivers", "new events, 2 gunicorn workers", cpu="cpu_2_receivers_us"),
    Figure("new_rate_4_receivers", "new events, 4 gunicorn workers", cpu="cpu_4_receivers_us"),
    Figure("drain_rate_1_workers", "drain, 1 worker process", cpu="cpu_1_workers_us"),
    Figure("drain_rate_2_workers", "drain, 2 worker processes", cpu="cpu_2_workers_us"),
    Figure("drain_rate_4_workers", "drain, 4 worker processes", cpu="cpu_4_workers_us"),
    Figure("pgbench_single_rate", "PostgreSQL alone, an event a commit"),
    Figure("pgbench_batch_rate", "PostgreSQL alone, 32 events a commit"),
    Figure("redis_single_rate", "Redis, one SET NX GET a round trip"),
    Figure("redis_batch_rate", "Redis, 32 a round trip"),
    Figure("window_rate", "our window by one client, claim and settle of 32 at a time"),
)
OTHERS = (
    Figure("uvicorn_attacked_failed", "honest deliveries without a 2xx beside ten attacks on uvicorn", ""),
    Figure("uvicorn_attacked_longest_ms", "the longest answer to one of them, uvicorn", "ms"),
    Figure("new_to_fastapi", "new events ÷ FastAPI and SQLAlchemy on uvicorn", "times"),
    Figure("stripe_to_djstripe", "new events of Stripe ÷ dj-stripe on Django and gunicorn", "times"),
    Figure("peer_github_cpu_us", "beside the peers, CPU per new event: gunicorn workers", "µs"),
    Figure("peer_fastapi_cpu_us", "the same of FastAPI: uvicorn workers", "µs"),
    Figure("peer_stripe_cpu_us", "beside the peers, CPU per new event of Stripe: gunicorn workers", "µs"),
    Figure("peer_djstripe_cpu_us", "the same of dj-stripe: gunicorn workers", "µs"),
    Figure("jobs_to_best", "jobs/s ÷ the fastest of all four task queues", "times"),
    Figure("new_to_raw", "new events ÷ plain WSGI that reads the delivery", ""),
    Figure("new_to_pgbench", "new events ÷ PostgreSQL alone, an event a commit", ""),
    Figure("answer_p50_ms", "answer at 70 % of peak, p50", "ms"),
    Figure("answer_lag_ms", "the same: how late the load generator sent, p99", "ms"),
    Figure("torrent_lag_ms", "while one connection torrents: how late the load generator sent, p99", "ms"),
    Figure("events_a_commit", "events a commit while new events come", "events"),
    Figure("cpu_empty_us", "CPU per empty request: gunicorn workers", "µs"),
    Figure("cpu_starlette_us", "CPU per new event: Starlette's uvicorn", "µs"),
    Figure("system_new_to_starlette", "on the system's PostgreSQL, new events ÷ Starlette", "times"),
    Figure("system_new_to_empty", "on the system's PostgreSQL, new events ÷ empty Flask route", ""),
    Figure("system_cpu_receiver_us", "on the system's PostgreSQL, CPU per new event: receiver", "µs"),
    Figure("cpu_postgres_us", "CPU per new event: PostgreSQL", "µs"),
    Figure("cpu_valkey_us", "CPU per new event: Valkey", "µs"),
    Figure("slots_to_one", "drain of a backlog, eight slots ÷ one at a time", ""),
    Figure("cpu_slots_to_one", "CPU per handled event, eight slots ÷ one at a time", ""),
    Figure("cpu_one_us", "beside the slots, one at a time, CPU per handled event: worker", "µs"),
    Figure("cpu_one_postgres_us", "the same, one at a time: PostgreSQL", "µs"),
    Figure("cpu_slots_us", "with eight slots, CPU per handled event: worker", "µs"),
    Figure("cpu_slots_postgres_us", "the same with eight slots: PostgreSQL", "µs"),
    Figure("cpu_worker_us", "CPU per handled event: RQ worker", "µs"),
    Figure("batch_cpu_worker_us", "CPU per event handled in a batch: RQ worker", "µs"),
    Figure("batch_cpu_worker_postgres_us", "CPU per event handled in a batch: PostgreSQL", "µs"),
    Figure("cpu_worker_postgres_us", "CPU per handled event: PostgreSQL", "µs"),
    Figure("window_bytes", "memory of the window per event", "bytes"),
    Figure("cpu_load_us", "CPU per new event: load generator", "µs"),
    Figure("cpu_load_empty_us", "CPU per empty request: load generator", "µs"),
    Figure("beside_put_off_p99", "beside a million put off ÷ quiet, p99", ""),
    Figure("beside_slow_p99", "beside a million for a slow handler ÷ quiet, p99", ""),
    Figure("beside_rated_p99", "beside 100,000 that a rate lets wait ÷ quiet, p99", ""),
    Figure("beside_quiet_p50_ms", "accept to done in quiet, with eight slots, p50", "ms"),
    Figure("beside_quiet_p99_ms", "accept to done in quiet, with eight slots, p99", "ms"),
    Figure("snapshot_quiet_rate", "a burst before the snapshot", cpu="cpu_snapshot_quiet_us"),
    Figure("snapshot_dead_tuples", "dead tuples under the snapshot", "rows"),
    Figure("sealed_to_plain", "new events, bodies encrypted ÷ not", ""),
    Figure("cpu_sealing_us", "CPU per new event for encrypting its body", "µs"),
    Figure("wrk_new_to_empty", "new events ÷ empty Flask route, by wrk", ""),
    Figure("wrk_to_ours_empty", "empty Flask route, wrk ÷ our generator", ""),
    Figure("wrk_to_ours_new", "new events, wrk ÷ our generator", ""),
    Figure("memory_events", "events before memory was read", "events"),
)
_LISTED = TARGETS + GROWTH + RATES + OTHERS + JOBS
COSTS = tuple(
    Figure(each.cpu, f"CPU for each: {each.title}", "µs")
    for each in _LISTED
    if each.cpu and each.cpu not in {listed.name for listed in _LISTED}
)
"""The CPU beside a rate, where it is not listed by itself."""
EVERY = _LISTED + COSTS
