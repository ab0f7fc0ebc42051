"""How many deliveries a second can be taken in: ours, the obvious way, and routes that do nothing.

Each round measures all of them in turn, so that a ratio compares neighbours in time.
"""

import base64
import contextlib
import os
from collections.abc import Callable

from bench.lab import Lab, closed, send
from bench.load import Plan
from bench.processes import cpu_seconds
from bench.stack import Server

KNOWN = 2000  # deliveries sent over and over to measure duplicates

_BATCH = "SELECT count(*)::float8 / count(DISTINCT received_at) FROM events"  # now() is the transaction's


def peaks(lab: Lab) -> None:
    """Measure empty route, new events, duplicates, obvious way, bare reading; note rates, ratios and CPU."""
    seconds = lab.pick(2.5, 0.7)
    with contextlib.ExitStack() as stack:
        ours, obvious = lab.stack.ours, lab.stack.obvious
        hookonce = stack.enter_context(ours.serve("wsgi:application"))
        other = stack.enter_context(obvious.serve("bench.obvious:app"))
        flask = stack.enter_context(ours.serve("bench.plain:flask_app"))
        raw = stack.enter_context(ours.serve("bench.plain:raw"))
        measures: dict[str, Callable[[], float]] = {
            "empty": lambda: _empty(lab, flask, seconds),
            "new": lambda: _new(lab, hookonce, seconds),
            "duplicates": lambda: _again(hookonce, seconds),
            "obvious": lambda: send(closed(other.port, seconds))["rate"],
            "flask_read": lambda: send(closed(flask.port, seconds))["rate"],
            "raw_read": lambda: send(closed(raw.port, seconds))["rate"],
        }
        for _ in lab.rounds(5, 2, seconds * 8):
            rates = {name: measure() for name, measure in measures.items()}
            lab.note(**{f"{name}_rate": rate for name, rate in rates.items()})
            lab.note(
                new_to_empty=rates["new"] / rates["empty"],
                new_to_obvious=rates["new"] / rates["obvious"],
                new_to_raw=rates["new"] / rates["raw_read"],
                duplicates_to_empty=rates["duplicates"] / rates["empty"],
            )
            ours.empty()
            obvious.empty()


def scale_receivers(lab: Lab) -> None:
    """Measure new events with 1, 2 and 4 gunicorn workers."""
    for _ in lab.rounds(3, 1, 15):
        for workers in (1, 2, 4):
            with lab.stack.ours.serve("wsgi:application", workers) as server:
                rate = send(closed(server.port, lab.pick(2.5, 1.0)))["rate"]
            lab.note(**{f"new_rate_{workers}_receivers": rate})
            lab.stack.ours.empty()


def answer_times(lab: Lab) -> None:
    """Measure the answer's p50 and p99 at 70 % of the peak of a moment ago, on a schedule."""
    with lab.stack.ours.serve("wsgi:application") as server:
        seconds = lab.pick(4, 2)
        for _ in lab.rounds(5, 1, seconds * 2.5):
            rate = 0.7 * send(closed(server.port, seconds / 2))["rate"]
            count = int(rate * seconds)
            plan = Plan(
                server.port, count=count, seconds=seconds, warm=seconds / 5, connections=32, rate=rate
            )
            result = send(plan)
            lab.note(answer_p50_ms=result["p50_ms"], answer_p99_ms=result["p99_ms"])
    lab.stack.ours.empty()


def sealed(lab: Lab) -> None:
    """Measure new events whose bodies are encrypted, and others, in turn; note what sealing costs in CPU."""
    seconds = lab.pick(2.0, 1.0)
    ours = lab.stack.ours
    file = lab.stack.directory / "sealed.toml"
    file.write_text('[receiver]\nencryption_keys = ["env:BENCH_KEY"]\n', encoding="ascii")
    keyed = {"HOOKONCE_CONFIG": str(file), "BENCH_KEY": base64.b64encode(os.urandom(32)).decode()}
    with ours.serve("wsgi:application") as plain, ours.serve("wsgi:application", **keyed) as sealing:
        for _ in lab.rounds(5, 1, seconds * 3):
            (plain_rate, plain_us), (sealed_rate, sealed_us) = (
                _with_cpu(server, seconds) for server in (plain, sealing)
            )
            lab.note(sealed_to_plain=sealed_rate / plain_rate, cpu_sealing_us=sealed_us - plain_us)
            ours.empty()


def redis_down(lab: Lab) -> None:
    """Measure new events with Redis and, right after, with Redis killed."""
    seconds = lab.pick(2.0, 1.0)
    valkey = lab.stack.valkey
    with lab.stack.ours.serve("wsgi:application") as server:
        for _ in lab.rounds(5, 1, seconds * 5):
            send(closed(server.port, 1))  # lets the breaker close after the last round
            with_redis = send(closed(server.port, seconds))["rate"]
            valkey.kill()
            try:
                without = send(closed(server.port, seconds))["rate"]
            finally:
                valkey.restart()
            lab.note(redis_down_rate=without, redis_down_to_up=without / with_redis)
    lab.stack.ours.empty()


def _empty(lab: Lab, server: Server, seconds: float) -> float:
    """Ask the empty route; its cost in CPU is what is left of a new event's when we do nothing."""
    before = cpu_seconds(server.pid)
    result = send(closed(server.port, seconds, path="/empty", bare=True))
    lab.note(cpu_empty_us=(cpu_seconds(server.pid) - before) / result["answered"] * 1e6)
    lab.note(cpu_load_empty_us=result["cpu_us"])
    return float(result["rate"])


def _with_cpu(server: Server, seconds: float) -> tuple[float, float]:
    """Send new deliveries; give the rate, and µs of the receiver's CPU for each."""
    before = cpu_seconds(server.pid)
    result = send(closed(server.port, seconds))
    return result["rate"], (cpu_seconds(server.pid) - before) / max(result["answered"], 1) * 1e6


def _again(server: Server, seconds: float) -> float:
    """Send deliveries that the window knows: the same requests in both passes, made by one generator."""
    plan = closed(server.port, seconds, count=KNOWN, again=True)
    plan.warm = seconds / 2  # the first KNOWN answers are of new events
    plan.seconds = seconds * 1.5
    return float(send(plan)["rate"])


def _new(lab: Lab, server: Server, seconds: float) -> float:
    """Send new deliveries and note what each costs in CPU, by who spends it."""
    pids = {
        "receiver": server.pid,
        "postgres": lab.stack.postgres.pid,
        "valkey": lab.stack.valkey.pid,
    }
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    result = send(closed(server.port, seconds))
    answered = max(result["answered"], 1)
    for name, pid in pids.items():
        lab.note(**{f"cpu_{name}_us": (cpu_seconds(pid) - before[name]) / answered * 1e6})
    lab.note(cpu_load_us=result["cpu_us"], events_a_commit=lab.stack.ours.value(_BATCH))
    return float(result["rate"])
