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
IN_POSTGRESQL = "procrastinate", "pgqueuer"
"""Those whose jobs survive their server's death, as hookonce's do."""
ON_REDIS = "celery", "dramatiq"


def handling(run: Run) -> None:
    """Have each take up a backlog in turn, then with its worker killed; then in turn again, if there is time."""
    if not are_installed():
        print("  the peers are not installed (`make bench-peers`); skipped", flush=True)
        return
    count = int(run.pick(3000, 600))
    queues = contenders(run.stack, lambda kind, jobs: add_backlog(run.stack.ours, jobs, kind))
    for number in run.rounds(2, 1, run.pick(60, 40)):
        # Batches of 500 would have done with so few before a rate can be told.
        rates = {
            queue.name: _rate(run, queue, count * 5 if queue.name == "batch" else count) for queue in queues
        }
        best = max(rates["one"], rates["eight"])
        run.note(
            jobs_to_durable=best / max(rates[name] for name in IN_POSTGRESQL),
            jobs_to_best=best / max(rates[name] for name in IN_POSTGRESQL + ON_REDIS),
            batch_to_durable=rates["batch"] / max(rates[name] for name in IN_POSTGRESQL),
        )
        for queue in queues if number == 0 else ():
            if queue.name != "one":  # with eight at once there is more to lose
                _with_kills(run, queue, count // 2)


def beside_pgqueuer(run: Run) -> None:
    """Have hookonce, one at a time and with eight slots, and pgqueuer take up a backlog in turn."""
    if not are_installed():
        print("  the peers are not installed (`make bench-peers`); skipped", flush=True)
        return
    count = int(run.pick(3000, 600))
    every = contenders(run.stack, lambda kind, jobs: add_backlog(run.stack.ours, jobs, kind))
    queues = [queue for queue in every if queue.name in {"one", "eight", "pgqueuer"}]
    for _ in run.rounds(3, 1, run.pick(20, 10)):
        rates = {queue.name: _rate(run, queue, count) for queue in queues}
        run.note(
            one_to_pgqueuer=rates["one"] / rates["pgqueuer"],
            eight_to_pgqueuer=rates["eight"] / rates["pgqueuer"],
        )


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
