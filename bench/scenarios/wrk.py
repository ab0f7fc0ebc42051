"""wrk beside our own generator, as a check: were ours slow, its rates would be the generator's and not the server's.

Skipped where wrk is not installed (`apt-get install wrk`).
"""

import shutil
import subprocess
from pathlib import Path

from bench.load.deliveries import bare, deliveries
from bench.load.sending import CONNECTIONS, MAX_RATE, BadAnswers, closed, send
from bench.run import Run
from bench.servers.process_costs import cpu_seconds
from bench.servers.stack import Server

SCRIPT = Path(__file__).with_name("wrk_requests.lua")


def cross_check(run: Run) -> None:
    """Measure the empty route and new events with wrk and with ours, in turn; in a quick run with wrk."""
    wrk = shutil.which("wrk")
    if wrk is None:
        print("  wrk is not installed; skipped", flush=True)
        return
    seconds = int(run.pick(2, 1))
    file = run.stack.directory / "requests"
    ours = run.stack.ours
    empty_route = "bench.peers.empty_route:flask_app"
    with ours.serve("wsgi:application") as hookonce, ours.serve(empty_route, is_stock=True) as flask:
        for _ in run.rounds(3, 1, seconds * 6):
            _write(file, [bare("/empty")] * MAX_RATE * seconds)
            empty = _wrk(run, wrk, flask, seconds, file, "cpu_wrk_empty_us")
            _write(file, deliveries(MAX_RATE * seconds, "/hooks/github"))
            new = _wrk(run, wrk, hookonce, seconds, file, "cpu_wrk_new_us")
            run.note(wrk_empty_rate=empty, wrk_new_rate=new, wrk_new_to_empty=new / empty)
            if not run.quick:
                empty_ours = send(closed(flask.port, seconds, path="/empty", bare=True))["rate"]
                new_ours = send(closed(hookonce.port, seconds))["rate"]
                run.note(wrk_to_ours_empty=empty / empty_ours, wrk_to_ours_new=new / new_ours)
            ours.empty()


def _write(file: Path, requests: list[bytes]) -> None:
    with file.open("wb") as out:
        out.writelines(b"%d\n%s" % (len(request), request) for request in requests)


def _wrk(run: Run, wrk: str, server: Server, seconds: int, file: Path, cpu: str) -> float:  # noqa: PLR0913, PLR0917
    """Return requests/s by wrk's own count; note by the name `cpu` what each costs the server.

    Raises `BadAnswers` unless all answers were 2xx or 3xx.
    """
    before = cpu_seconds(server.pid)
    command = [wrk, "--threads", "1", "--connections", str(CONNECTIONS), "--duration", f"{seconds}s"]
    output = subprocess.run(  # noqa: S603  found on PATH, on loopback
        [*command, "--script", str(SCRIPT), f"http://127.0.0.1:{server.port}", "--", str(file)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    if "Non-2xx" in output or "Socket errors" in output:
        raise BadAnswers(f"wrk saw bad answers: {output}")
    answered = int(output.split(" requests in ")[0].split()[-1])
    run.note(**{cpu: (cpu_seconds(server.pid) - before) / max(answered, 1) * 1e6})
    return float(output.split("Requests/sec:")[1].split()[0])
