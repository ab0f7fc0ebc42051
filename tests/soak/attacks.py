"""`python -m tests.soak.attacks [NAME …]`: each attack at full rate, on one and on two workers, in plain and under TLS.

A table of what honest senders (20 signed deliveries a second) and probes waited; exit status 1 where it was too long.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

from hookonce.receiver.dev.embedded import Postgres, Valkey
from hookonce.receiver.ledger.database import migrate
from tests.http.conftest import SECRETS, SENDERS, serving
from tests.support.attacks import certificate
from tests.support.attacks.flood import ATTACKS
from tests.support.attacks.honest import Schedule, delivery, probe

P99, LONGEST, PROBE = 0.25, 1.0, 0.25
"""Seconds: of deliveries, and of probes at most."""


def measure(server, name, seconds, context, count=None, ahead=1.0):
    """Attack for so long; give the waits of deliveries and probes, and what the attackers got through.

    Honest senders come so many seconds after the attackers' start.
    """
    number = str(ATTACKS[name].count if count is None else count)
    command = [
        sys.executable,
        "-m",
        "tests.support.attacks.flood",
        name,
        str(server.port),
        number,
        f"{seconds + ahead}",
    ]
    with subprocess.Popen(
        command + (["--tls"] if context else []), stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    ) as attackers:
        time.sleep(ahead)
        with (
            Schedule(server.port, 20, delivery(SENDERS["stripe"], SECRETS["stripe"]), context) as honest,
            Schedule(server.port, 5, probe("/livez"), context) as alive,
            Schedule(server.port, 5, probe("/readyz"), context) as ready,
        ):
            time.sleep(seconds * 2 / 3)
        through = json.loads(attackers.communicate()[0] or "{}")
    return honest.waits, alive.waits, ready.waits, through


@contextlib.contextmanager
def servers():
    """PostgreSQL and Valkey, migrated."""
    with (
        tempfile.TemporaryDirectory(prefix="hookonce-soak-", dir="/dev/shm") as name,
        contextlib.ExitStack() as stack,
    ):
        directory = Path(name)
        directory.chmod(0o711)
        postgres = Postgres.start(directory, durable=False)
        stack.callback(postgres.stop)
        valkey = Valkey.start(directory)
        stack.callback(valkey.stop)
        migrate.upgrade(postgres.url)
        yield postgres.url, valkey.url


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(ATTACKS))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", choices=["plain", "tls"])
    options = parser.parse_args()
    failed = False
    with servers() as (database_url, redis_url):
        for workers in options.workers:
            for kind in [options.only] if options.only else ["plain", "tls"]:
                failed |= table(options, database_url, redis_url, workers, kind)
    sys.exit(failed)


def table(options, database_url, redis_url, workers, kind):
    """Measure all attacks against one server; whether any was too long."""
    failed = False
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        more, context = [], None
        if kind == "tls":
            more, context = certificate.made(directory)
        with serving(
            directory,
            database_url,
            redis_url,
            max_body=25 * 1024 * 1024,
            options=more,
            context=context,
            WEB_CONCURRENCY=str(workers),
            HOOKONCE_LOG_LEVEL="WARNING",
        ) as server:
            for _ in range(20 * workers):  # every worker has its connections open
                server.deliver(json.dumps({"id": uuid.uuid4().hex, "type": "a"}).encode())
            say(
                f"\n{workers} worker{'s'[: workers - 1]}, {kind}: seconds, deliveries p50 p99 max | livez, readyz max"
            )
            for attack in options.names or ATTACKS:
                failed |= row(attack, *measure(server, attack, options.seconds, context))
            if "Traceback" in server.logged():
                say(server.logged()[-3000:])
                failed = True
    return failed


def row(attack, honest, alive, ready, through):
    """Say how one attack went; whether it was too bad."""
    bad = honest.at(0.99) > P99 or honest.longest > LONGEST or max(alive.longest, ready.longest) > PROBE
    wrong = [*honest.wrong, *alive.wrong, *ready.wrong]
    say(
        f"{attack:34} {honest.at(0.5):.3f} {honest.at(0.99):.3f} {honest.longest:.3f} | {alive.longest:.3f}"
        f" {ready.longest:.3f} | {through.get('sent', 0) / 1e6:8.1f} MB {through.get('connected', 0):7} connections"
        f" {'TOO LONG' if bad else ''} {wrong[:3] or ''}"
    )
    return bool(bad or wrong)


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
