"""How many deliveries a second can be taken in: ours, what others would write, and routes that do nothing.

Each round measures all of them in turn, so that a ratio compares neighbours in time.
"""

import base64
import contextlib
import os
import time
from collections.abc import Callable
from functools import partial

from bench.load.generator import Plan
from bench.load.sending import CONNECTIONS, closed, prepare, send
from bench.run import Run
from bench.servers.attackers import TORRENT, attacking
from bench.servers.peers import Peers, are_installed
from bench.servers.process_costs import cpu_seconds
from bench.servers.stack import Server, running
from hookonce.receiver.dev.embedded import binaries

KNOWN = 2000  # deliveries sent over and over to measure duplicates

_BATCH = (
    "SELECT count(*)::float8 / count(DISTINCT received_at) FROM hookonce.events"  # now() is the transaction's
)


def peaks(run: Run) -> None:
    """Measure empty route, new events, duplicates, Starlette's sixty lines; note rates, ratios and CPU.

    In a full run, the obvious way and bare reading too.
    """
    seconds = run.pick(2.5, 0.2)
    ours, obvious = run.stack.ours, run.stack.obvious
    with contextlib.ExitStack() as stack:
        hookonce = stack.enter_context(ours.serve("wsgi:application"))
        flask = stack.enter_context(ours.serve("bench.peers.empty_route:flask_app", is_stock=True))
        measures: dict[str, Callable[[], float]] = {
            "empty": lambda: empty(run, flask, seconds),
            "new": lambda: _new(run, hookonce, seconds),
            "duplicates": lambda: _again(run, hookonce, seconds),
        }
        if are_installed():
            starlette = stack.enter_context(Peers(run.stack).starlette())
            measures["starlette"] = partial(_rate, run, starlette, seconds, "cpu_starlette_us")
        else:
            print("  without Starlette: the peers are not installed (`make bench-peers`)", flush=True)
        if not run.quick:
            other = stack.enter_context(obvious.serve("bench.peers.obvious_way:app", is_stock=True))
            raw = stack.enter_context(ours.serve("bench.peers.empty_route:raw", is_stock=True))
            for name, server in (("obvious", other), ("flask_read", flask), ("raw_read", raw)):
                measures[name] = partial(_rate, run, server, seconds, f"cpu_{name}_us")
        send(Plan(hookonce.port, count=CONNECTIONS))  # or a quick round is of the first connections
        for _ in run.rounds(5, 1, seconds * 9):
            rates = {name: measure() for name, measure in measures.items()}
            run.note(**{f"{name}_rate": rate for name, rate in rates.items()})
            run.note(
                new_to_empty=rates["new"] / rates["empty"],
                duplicates_to_empty=rates["duplicates"] / rates["empty"],
            )
            compared = {"starlette": "starlette", "obvious": "obvious", "raw_read": "raw"}
            run.note(
                **{
                    f"new_to_{to}": rates["new"] / rates[name]
                    for name, to in compared.items()
                    if name in rates
                }
            )
            ours.empty()
            obvious.empty()


def _rate(run: Run, server: Server, seconds: float, cpu: str) -> float:
    """Send new deliveries, and note by the name `cpu` what each costs the server."""
    rate, each = with_cpu(server, seconds)
    run.note(**{cpu: each})
    return rate


def other_postgresql(run: Run) -> None:
    """Measure empty route, new events and Starlette's sixty lines on the PostgreSQL of the system, if there is one."""
    programs = next(filter(binaries.complete, binaries.system_postgres()), None)
    if programs is None:
        print("  no PostgreSQL of the system is installed; skipped", flush=True)
        return
    seconds = run.pick(2.5, 0.2)
    with running(programs=programs) as servers, contextlib.ExitStack() as stack:
        flask = stack.enter_context(servers.ours.serve("bench.peers.empty_route:flask_app", is_stock=True))
        hookonce = stack.enter_context(servers.ours.serve("wsgi:application"))
        has_peers = are_installed() and not run.quick
        starlette = stack.enter_context(Peers(servers).starlette()) if has_peers else None
        for _ in run.rounds(3, 1, seconds * 4):
            empty = send(closed(flask.port, seconds, path="/empty", bare=True))["rate"]
            new, cpu = with_cpu(hookonce, seconds)
            run.note(system_new_rate=new, system_new_to_empty=new / empty, system_cpu_receiver_us=cpu)
            if starlette is not None:
                theirs = send(closed(starlette.port, seconds))["rate"]
                run.note(system_new_to_starlette=new / theirs)
            servers.ours.empty()


def peers(run: Run) -> None:
    """Measure what users would pick instead, beside us: GitHub's events with FastAPI, Stripe's with dj-stripe."""
    if not are_installed():
        print("  the peers are not installed (`make bench-peers`); skipped", flush=True)
        return
    seconds = run.pick(3, 0.2)
    ours, others = run.stack.ours, Peers(run.stack)
    with contextlib.ExitStack() as stack:
        hookonce = stack.enter_context(ours.serve("wsgi:application"))
        fastapi = stack.enter_context(others.fastapi())
        if run.quick:
            print("  without dj-stripe, whose migrations alone take longer than a look", flush=True)
            rate, fastapi_rate = (send(closed(each.port, seconds))["rate"] for each in (hookonce, fastapi))
            run.note(peer_fastapi_rate=fastapi_rate, new_to_fastapi=rate / fastapi_rate)
            ours.empty()
            return
        djstripe, path = stack.enter_context(others.djstripe())
        send(
            Plan(djstripe.port, path, sender="stripe", count=CONNECTIONS)
        )  # or the first round is of its imports
        for _ in run.rounds(5, 1, seconds * 7):
            rate, cpu = with_cpu(hookonce, seconds)
            stripe_rate, stripe_cpu = with_cpu(hookonce, seconds, sender="stripe", path="/hooks/stripe")
            fastapi_rate, fastapi_cpu = with_cpu(fastapi, seconds)
            djstripe_rate, djstripe_cpu = with_cpu(djstripe, seconds, sender="stripe", path=path)
            run.note(peer_fastapi_rate=fastapi_rate, peer_djstripe_rate=djstripe_rate)
            run.note(peer_fastapi_cpu_us=fastapi_cpu, peer_djstripe_cpu_us=djstripe_cpu)
            run.note(peer_github_cpu_us=cpu, peer_stripe_cpu_us=stripe_cpu)
            run.note(new_to_fastapi=rate / fastapi_rate, stripe_to_djstripe=stripe_rate / djstripe_rate)
            ours.empty()


def scale_receivers(run: Run) -> None:
    """Measure new events with 1, 2 and 4 gunicorn workers."""
    for _ in run.rounds(3, 1, 15):
        for workers in (1, 2) if run.quick else (1, 2, 4):
            with run.stack.ours.serve("wsgi:application", workers) as server:
                rate = _rate(run, server, run.pick(2.5, 0.3), f"cpu_{workers}_receivers_us")
            run.note(**{f"new_rate_{workers}_receivers": rate})
            run.stack.ours.empty()


def answer_times(run: Run) -> None:
    """Measure the answer's p50 and p99 at 70 % of the peak of a moment ago, then while one connection torrents."""
    with run.stack.ours.serve("wsgi:application") as server:
        seconds = run.pick(4, 0.4)
        for _ in run.rounds(5, 1, seconds * 4):
            rate = 0.7 * send(closed(server.port, seconds / 2))["rate"]
            result = send(_steady(server, rate, seconds))
            run.note(answer_p50_ms=result["p50_ms"], answer_p99_ms=result["p99_ms"])
            run.note(answer_lag_ms=result["lag_ms"])
            with attacking(TORRENT, server.port, 1, seconds + run.pick(2, 1)):
                torrented = send(_steady(server, rate, seconds))
            run.note(torrent_p99_ms=torrented["p99_ms"], torrent_lag_ms=torrented["lag_ms"])
    run.stack.ours.empty()


def _steady(server: Server, rate: float, seconds: float) -> Plan:
    count = int(rate * seconds)
    return Plan(
        server.port, count=count, seconds=seconds, warm=seconds / 5, connections=CONNECTIONS, rate=rate
    )


def sealed(run: Run) -> None:
    """Measure new events whose bodies are encrypted, and others, in turn; note what sealing costs in CPU."""
    seconds = run.pick(2.0, 0.2)
    ours = run.stack.ours
    file = run.stack.directory / "sealed.toml"
    file.write_text('[receiver]\nencryption_keys = ["env:BENCH_KEY"]\n', encoding="ascii")
    keyed = {"HOOKONCE_CONFIG": str(file), "BENCH_KEY": base64.b64encode(os.urandom(32)).decode()}
    with ours.serve("wsgi:application") as plain, ours.serve("wsgi:application", **keyed) as sealing:
        for _ in run.rounds(5, 1, seconds * 3):
            (plain_rate, plain_us), (sealed_rate, sealed_us) = (
                with_cpu(server, seconds) for server in (plain, sealing)
            )
            run.note(sealed_to_plain=sealed_rate / plain_rate, cpu_sealing_us=sealed_us - plain_us)
            ours.empty()


def redis_down(run: Run) -> None:
    """Measure new events with Redis and, right after, with Redis killed."""
    seconds = run.pick(2.0, 0.4)
    valkey = run.stack.valkey
    with run.stack.ours.serve("wsgi:application") as server:
        for _ in run.rounds(5, 1, seconds * 5):
            send(closed(server.port, run.pick(1, 0.2)))  # lets the breaker close after the last round
            with_redis = send(closed(server.port, seconds))["rate"]
            valkey.kill()
            try:
                without = _rate(run, server, seconds, "cpu_redis_down_us")
            finally:
                valkey.restart()
            run.note(redis_down_rate=without, redis_down_to_up=without / with_redis)
    run.stack.ours.empty()


def empty(run: Run, server: Server, seconds: float) -> float:
    """Ask the empty route; its cost in CPU is what is left of a new event's when we do nothing."""
    before = cpu_seconds(server.pid)
    result = send(closed(server.port, seconds, path="/empty", bare=True))
    run.note(cpu_empty_us=(cpu_seconds(server.pid) - before) / result["answered"] * 1e6)
    run.note(cpu_load_empty_us=result["cpu_us"])
    return float(result["rate"])


def with_cpu(server: Server, seconds: float, **options: str) -> tuple[float, float]:
    """Send new deliveries; give the rate, and µs of the receiver's CPU for each."""
    before = cpu_seconds(server.pid)
    result = send(closed(server.port, seconds, **options))
    return result["rate"], (cpu_seconds(server.pid) - before) / max(result["answered"], 1) * 1e6


def _again(run: Run, server: Server, seconds: float) -> float:
    """Send deliveries that the window knows: the same requests in both passes, made by one generator."""
    plan = closed(server.port, seconds, count=KNOWN, again=True)
    plan.warm = seconds / 2  # the first KNOWN answers are of new events
    plan.seconds = seconds * 1.5
    load = prepare(plan)
    load.start()
    time.sleep(plan.warm)
    before = cpu_seconds(server.pid)
    rate = float(load.result()["rate"])
    run.note(cpu_duplicates_us=(cpu_seconds(server.pid) - before) / max(rate * seconds, 1) * 1e6)
    return rate


def _new(run: Run, server: Server, seconds: float) -> float:
    """Send new deliveries and note what each costs in CPU, by who spends it."""
    pids = {
        "receiver": server.pid,
        "postgres": run.stack.postgres.pid,
        "valkey": run.stack.valkey.pid,
    }
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    result = send(closed(server.port, seconds))
    answered = max(result["answered"], 1)
    for name, pid in pids.items():
        run.note(**{f"cpu_{name}_us": (cpu_seconds(pid) - before[name]) / answered * 1e6})
    run.note(cpu_load_us=result["cpu_us"], events_a_commit=run.stack.ours.value(_BATCH))
    return float(result["rate"])
