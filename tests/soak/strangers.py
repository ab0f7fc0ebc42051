"""`python -m tests.soak.strangers [NAME …]`: strangers who hold the door, at one address, at 200, at the senders' own.

A table of what honest senders with 40 ms of round trip waited for an answer; exit status 1 where it was too long.
"""

import argparse
import contextlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.http.conftest import SECRETS, SENDERS, serving
from tests.soak.attacks import say, servers
from tests.support.attacks import certificate
from tests.support.attacks.distant import Senders
from tests.support.attacks.flood import ATTACKS
from tests.support.attacks.honest import delivery

ROOT = Path(__file__).parents[2]
P99, LONGEST = 0.25, 1.2
"""Seconds."""
NAMES = ("silent handshakes", "held probes", "modest clients", "connections that come and go")
PLACES = {"one address": 1, "200 addresses": 200, "the senders' own": 0}
"""Where the strangers are: at so many addresses, none of which is the senders'; 0 is theirs."""
PROCESSES = {"held probes": 2}


@contextlib.contextmanager
def strangers(name, port, seconds, addresses, context=None, count=None):
    """Attack for so long; gives a list that holds, at the end, what each process got through."""
    number = PROCESSES.get(name, 1)
    count = (ATTACKS[name].count if count is None else count) // number
    command = [sys.executable, "-m", "tests.support.attacks.flood", name, str(port), str(count), str(seconds)]
    command += ["--tls"] if context else []
    command += ["--addresses", str(addresses)]
    through = []
    with contextlib.ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT))
            for _ in range(number)
        ]
        yield through
        through += [json.loads(each.communicate()[0] or "{}") for each in processes]


def measure(server, name, place, *, seconds, ahead=2.0, count=None, senders=8):
    """Have honest senders deliver beside strangers; give what they waited, and what the strangers got through.

    Senders deliver before, so that their address is known, and again `ahead` seconds after the strangers came.
    """
    make = delivery(SENDERS["stripe"], SECRETS["stripe"], keeps=True)
    with Senders(server.port, make, server.context, 4):
        time.sleep(0.5)
    with strangers(name, server.port, seconds + ahead, PLACES[place], server.context, count) as through:
        time.sleep(ahead)
        with Senders(server.port, make, server.context, senders) as honest:
            time.sleep(seconds - 0.5)
    return honest.waits, through


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, help=", ".join(NAMES))
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    parser.add_argument("--only", choices=["plain", "tls"])
    parser.add_argument("--places", nargs="+", default=PLACES, choices=PLACES)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    failed = False
    with servers() as (database_url, redis_url):
        for workers in options.workers:
            for kind in [options.only] if options.only else ["plain", "tls"]:
                failed |= table(options, database_url, redis_url, workers, kind)
    sys.exit(failed)


def table(options, database_url, redis_url, workers, kind):
    """Measure all strangers against one server; whether any wait was too long."""
    failed = False
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        more, context = certificate.made(directory) if kind == "tls" else ((), None)
        say(f"\n{workers} processes, {kind}: seconds p50 p99 max")
        with serving(
            directory,
            database_url,
            redis_url,
            options=more,
            context=context,
            WEB_CONCURRENCY=str(workers),
            HOOKONCE_LOG_LEVEL="WARNING",
        ) as server:
            for attack in options.names:
                if kind == "plain" and attack == "silent handshakes":
                    continue
                for place in options.places:
                    waits, through = measure(server, attack, place, seconds=options.seconds)
                    bad = waits.at(0.99) > P99 or waits.longest > LONGEST or waits.wrong
                    failed |= bool(bad)
                    say(
                        f"{attack:30} {place:18} {waits.at(0.5):.3f} {waits.at(0.99):.3f} {waits.longest:.3f}"
                        f" of {len(waits.seconds)} | {sum(each['connected'] for each in through)} connections"
                        f" {'TOO LONG' if bad else ''} {len(waits.wrong)} wrong {waits.wrong[:3] or ''}"
                    )
            if "Traceback" in server.logged():
                say(server.logged()[-3000:])
                failed = True
    return failed


if __name__ == "__main__":
    main()
