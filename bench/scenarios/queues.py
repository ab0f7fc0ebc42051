"""The same job by hookonce and by task queues: jobs per second, CPU of a job, and what kill -9 of the worker does.

A backlog of one small write each, one worker. The queues are told a number; hookonce has an event of 1.2 KB with its
headers to read, and its ledger to keep.
"""

from bench.peers.jobs import NOTICED
from bench.run import Run
from bench.scenarios.handling import add_backlog
from bench.servers.job_queues import JobQueue, contenders, kill
from bench.servers.peers import are_installed
from bench.servers.process_costs import cpu_seconds

KILLS = 5
SILENCE = 25
"""Seconds without an effect after which a job counts as lost: hookonce's leases on these runs take 17."""
_KILLING = 45
"""Seconds that it takes to kill one, five times."""
EACH = "one", "eight"
"""Ours, an event each."""
QUICK = "batch", "procrastinate"
IN_POSTGRESQL = "procrastinate", "pgqueuer"
"""Those whose jobs survive their server's death, as hookonce's do."""
ON_REDIS = "celery", "dramatiq"


def handling(run: Run) -> None:
    """Have each take up a backlog in turn, then with its worker killed; then in turn again, if there is time."""
    if not are_installed():
        print("  the peers are not installed (`make bench-peers`); skipped", flush=True)
        return
    count = int(run.pick(3000, 200))
    queues = contenders(run.stack, lambda kind, jobs: add_backlog(run.stack.ours, jobs, kind))
    if run.quick:
        queues = [queue for queue in queues if queue.name in QUICK]
    for number in run.rounds(2, 1, run.pick(60, 40)):
        # Batches of 500 would have done with so few before a rate can be told.
        rates = {
            queue.name: _rate(run, queue, count * 5 if queue.name == "batch" else count) for queue in queues
        }
        durable = max(rate for name, rate in rates.items() if name in IN_POSTGRESQL)
        run.note(batch_to_durable=rates["batch"] / durable)
        if not run.quick:
            best, every = (max(rates[name] for name in names) for names in (EACH, IN_POSTGRESQL + ON_REDIS))
            run.note(jobs_to_durable=best / durable, jobs_to_best=best / every)
        for queue in queues if number == 0 and not run.quick else ():
            if queue.name == "one":  # with eight at once there is more to lose
                continue
            if not run.has_time(_KILLING):
                print("  out of time before all were killed; `make bench-peers` has more", flush=True)
                break
            _with_kills(run, queue, count // 2)


def beside_pgqueuer(run: Run) -> None:
    """Have hookonce, one at a time and with eight slots, and pgqueuer take up a backlog in turn."""
    if not are_installed():
        print("  the peers are not installed (`make bench-peers`); skipped", flush=True)
        return
    count = int(run.pick(3000, 300))
    every = contenders(run.stack, lambda kind, jobs: add_backlog(run.stack.ours, jobs, kind))
    wanted = {"one", "pgqueuer"} if run.quick else {"one", "eight", "pgqueuer"}
    queues = [queue for queue in every if queue.name in wanted]
    for _ in run.rounds(3, 1, run.pick(20, 10)):
        rates = {queue.name: _rate(run, queue, count) for queue in queues}
        others = rates.items() - {("pgqueuer", rates["pgqueuer"])}
        run.note(**{f"{name}_to_pgqueuer": rate / rates["pgqueuer"] for name, rate in others})


def _rate(run: Run, queue: JobQueue, count: int) -> float:
    """Note and give jobs per second from the first effect to the last; note the CPU of a job once all run."""
    queue.empty()
    queue.fill(count)
    with queue.worker() as worker:
        servers = run.stack.postgres.pid, run.stack.valkey.pid
        begun = queue.wait_for(count // 4)  # whoever starts costs more than work does
        before = [cpu_seconds(pid) for pid in (worker.pid, *servers)]
        seen = queue.wait_for(count)
        spent = [cpu_seconds(pid) - at for pid, at in zip((worker.pid, *servers), before, strict=True)]
    queue.empty()
    rate = seen.rows / seen.seconds if seen.seconds else 0.0
    each = [seconds / max(seen.jobs - begun.jobs, 1) * 1e6 for seconds in spent]
    run.note(
        **{
            f"jobs_{queue.name}_rate": rate,
            f"jobs_{queue.name}_cpu_us": sum(each),
            f"jobs_{queue.name}_worker_us": each[0],
            f"jobs_{queue.name}_postgres_us": each[1],
        }
    )
    return rate


def _with_kills(run: Run, queue: JobQueue, count: int) -> None:
    """Kill the worker `KILLS` times at equal parts of the backlog, start another at once; note what came of it."""
    queue.empty()
    queue.fill(count)
    for number in range(1, KILLS + 1):
        with queue.worker(impatient=True) as worker:
            queue.wait_for(count * number // (KILLS + 1), SILENCE)
            kill(worker)
    with queue.worker(impatient=True):
        seen = queue.wait_for(count, SILENCE)
        rows = seen.rows
        while (later := queue.wait_for(count + 1, NOTICED + 1)).rows > rows:
            rows = later.rows  # a second run of what was done comes after the last job
    queue.empty()
    run.note(
        **{
            f"jobs_{queue.name}_doubled": later.rows - later.jobs,
            f"jobs_{queue.name}_lost": count - later.jobs,
        }
    )
