"""wrk beside our own generator, as a check: were ours slow, its rates would be the generator's and not the server's.

Skipped where wrk is not installed (`apt-get install wrk`).
"""

import shutil
import subprocess
from pathlib import Path

from bench.deliveries import bare, deliveries
from bench.lab import CONNECTIONS, MOST_PER_SECOND, BadAnswers, Lab, closed, send

SCRIPT = Path(__file__).with_name("requests.lua")


def cross_check(lab: Lab) -> None:
    """Measure the empty route and new events with wrk and with ours, in turn."""
    wrk = shutil.which("wrk")
    if wrk is None:
        print("  wrk is not installed; skipped", flush=True)
        return
    seconds = 2
    file = lab.stack.directory / "requests"
    ours = lab.stack.ours
    with ours.serve("wsgi:application") as hookonce, ours.serve("bench.plain:flask_app") as flask:
        for _ in lab.rounds(3, 1, seconds * 6):
            _write(file, [bare("/empty")] * MOST_PER_SECOND * seconds)
            empty = _wrk(wrk, flask.port, seconds, file)
            empty_ours = send(closed(flask.port, seconds, path="/empty", bare=True))["rate"]
            _write(file, deliveries(MOST_PER_SECOND * seconds, "/hooks/github"))
            new = _wrk(wrk, hookonce.port, seconds, file)
            new_ours = send(closed(hookonce.port, seconds))["rate"]
            lab.note(wrk_empty_rate=empty, wrk_new_rate=new, wrk_new_to_empty=new / empty)
            lab.note(wrk_to_ours_empty=empty / empty_ours, wrk_to_ours_new=new / new_ours)
            ours.empty()


def _write(file: Path, requests: list[bytes]) -> None:
    with file.open("wb") as out:
        out.writelines(b"%d\n%s" % (len(request), request) for request in requests)


def _wrk(wrk: str, port: int, seconds: int, file: Path) -> float:
    """Give requests/s by wrk's own count. Raises `BadAnswers` unless all answers were 2xx or 3xx."""
    command = [wrk, "--threads", "1", "--connections", str(CONNECTIONS), "--duration", f"{seconds}s"]
    output = subprocess.run(  # noqa: S603  found on PATH, on loopback
        [*command, "--script", str(SCRIPT), f"http://127.0.0.1:{port}", "--", str(file)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    if "Non-2xx" in output or "Socket errors" in output:
        raise BadAnswers(f"wrk saw bad answers: {output}")
    return float(output.split("Requests/sec:")[1].split()[0])
