"""Many runs at once in one worker process: one write each, interleaved with one at a time, and handlers that wait."""

from bench.run import Run
from bench.scenarios.handling import add_backlog, drain
from bench.servers.process_costs import cpu_seconds
from bench.servers.stack import WORKER

SLOTS = 8
"""For handlers that only write: more slots wait for each other."""
WAITING_SLOTS = 64
_BETWEEN = "SELECT count(*) / extract(epoch FROM max(at) - min(at)) FROM effects"


def of(slots: int) -> tuple[str, ...]:
    """Return the command of a worker with so many slots."""
    return (*WORKER, "--concurrency", str(slots))


def writing(run: Run) -> None:
    """Have one process take up a backlog with slots, and one at a time, in turn; in a quick run with slots."""
    count = int(run.pick(10_000, 300))
    for _ in run.rounds(4, 1, run.pick(25, 5)):
        many, at_many = drain(
            run, count, 1, command=of(SLOTS), names=("cpu_slots_us", "cpu_slots_postgres_us")
        )
        run.note(slots_rate=many)
        if not run.quick:
            one, at_one = drain(run, count, 1, names=("cpu_one_us", "cpu_one_postgres_us"))
            run.note(slots_to_one=many / one, cpu_slots_to_one=at_many / at_one)


def waiting(run: Run) -> None:
    """Have 64 slots take up events whose handlers wait for 200 ms."""
    site, count = run.stack.ours, int(run.pick(3000, 100))
    for _ in run.rounds(3, 1, run.pick(16, 6)):
        site.empty()
        add_backlog(site, count, type="waits")
        with site.workers(1, of(WAITING_SLOTS)) as (worker,):
            site.await_effects(count // 4)  # a worker that starts costs more than work does
            before, begun = cpu_seconds(worker), site.value("SELECT count(*) FROM effects")
            site.await_effects(count)
            each = (cpu_seconds(worker) - before) / max(count - begun, 1) * 1e6
        run.note(waiting_rate=site.value(_BETWEEN), cpu_waiting_us=each)
    site.empty()
