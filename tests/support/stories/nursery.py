"""Forks receivers, workers and sweeps from a parent that has imported everything: 10 ms a process, not 700.

Run as a script, `receivers`, `workers` or `django` (workers there). A receiver is gunicorn's child as
`hookonce serve` has it: our worker class under our settings, without the arbiter, which takes no deliveries. The script
reads one request a line and answers one line: {"role": …} starts a child and gives its process id, {"reap": pid} waits
for one and gives how it ended. A child may have a mistake planted in it, and failpoints armed.
"""

import ctypes
import gc
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path

import redis

from hookonce.providers.kit import registry
from hookonce.receiver import failpoints
from hookonce.receiver.config.settings import Settings, load_settings
from hookonce.receiver.ledger.database import engines
from tests.stories import mistakes
from tests.support.stories.plans import SENDERS
from tests.support.waiting import DeadlineMissed, until

ROOT = Path(__file__).parents[3]
PR_SET_PDEATHSIG = 1
MOST_SECONDS = 10.0
"""That a worker of many slots goes on for."""


class Nursery:
    """The client's side: starts the parent and asks it for children."""

    def __init__(self, kind):
        self._parent = subprocess.Popen(
            [sys.executable, "-m", "tests.support.stories.nursery", kind],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, role, environ, **wishes):
        """Fork a child; `wishes` are those of `_become`."""
        return self._ask({"role": role, "environ": environ, **wishes})

    def reap(self, pid):
        """Wait for a child and give its exit status, negative for a signal."""
        return self._ask({"reap": pid})

    def close(self):
        self._parent.stdin.close()
        self._parent.wait(10)
        self._parent.stdout.close()

    def _ask(self, request):
        self._parent.stdin.write(json.dumps(request) + "\n")
        self._parent.stdin.flush()
        return json.loads(self._parent.stdout.readline())


def _serve_requests():
    for line in sys.stdin:
        request = json.loads(line)
        if "reap" in request:
            _, status = os.waitpid(request["reap"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = _fork(request)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


def _fork(request):
    listener = _listen(request["at"]) if "at" in request else None
    pid = os.fork()
    if pid == 0:
        try:
            _become(listener=listener, **request)
            status = 0
        except SystemExit as error:
            status = error.code or 0
        except BaseException:  # noqa: BLE001  the child ends here, whatever it was
            traceback.print_exc()
            status = 1
        os._exit(status)
    if listener:
        listener.close()
    return pid


def _listen(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(256)
    return listener


def _become(
    *,
    role,
    environ,
    listener=None,
    fatal=None,
    only=None,
    log=None,
    skew=0,
    tight=False,
    at=None,  # noqa: ARG001  for the parent
):
    """Turn into the child: `fatal`, `only` and `log` arm the failpoints, `skew` puts the clock wrong by seconds."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what is printed must not be taken for an answer
    os.environ.update(environ)
    logging.basicConfig(level=os.environ.get("STORY_LOG_LEVEL", "CRITICAL"))
    if skew:
        _put_clock_wrong(timedelta(seconds=skew))
    _plant(os.environ.get("HOOKONCE_PLANTED_MISTAKE"), role)
    if log:
        failpoints.arm_at(only, log, fatal or 0) if only else failpoints.arm(fatal or 0, log)
    ROLES[role](listener, tight=tight)


def _plant(mistake, role):
    if mistake:
        mistakes.plant(mistake, role)


def _put_clock_wrong(by):
    """Give every module of ours that reads the wall clock one that is wrong."""

    class Wrong(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) + by

    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in {"hookonce", "tests"} and getattr(module, "datetime", None) is datetime:
            module.datetime = Wrong
    right = time.time
    time.time = lambda: right() + by.total_seconds()


def _receive(listener, *, tight):  # noqa: ARG001
    from hookonce.receiver.intake import background_writer  # noqa: PLC0415  of no use to workers
    from tests.support.stories import gunicorn_child  # noqa: PLC0415  same

    background_writer.WRITE_INTERVAL = timedelta(
        hours=1
    )  # one writing a process, so that the failpoints come in one order
    gunicorn_child.become(listener)


def _work_in_django(listener, *, tight):
    """Work as `manage.py hookonce_worker` does."""
    from hookonce.django import ledger_database  # noqa: PLC0415  of use to nobody else
    from hookonce.jobs import drain  # noqa: PLC0415  same
    from hookonce.jobs.attempts.django_transaction import DjangoTransactions  # noqa: PLC0415  same
    from hookonce.jobs.slots.single_slot import SingleSlot  # noqa: PLC0415  same
    from tests.support import django_project  # noqa: PLC0415  same

    django_project.lead("default", ledger_database())
    _work(listener, tight=tight, made=SingleSlot(*drain.configured(), DjangoTransactions))


def _work(_listener, *, tight, made=None):
    """Answer the rings that wait, then run what is to be run alone, which one that goes on looks for without a ring."""
    from hookonce.jobs import drain  # noqa: PLC0415  of no use to receivers
    from hookonce.jobs.slots.single_slot import SingleSlot  # noqa: PLC0415  same

    made = made or SingleSlot(*drain.configured())
    _answer(made, tight=tight)
    with suppress(Exception):  # a server may be away
        made.run_suspects()
    made.finish()


def _answer(made, *, tight):
    """Answer the rings that wait, and end when there are none."""
    from hookonce.jobs import claimer, worker  # noqa: PLC0415  same

    _beat()
    if tight:  # the budget is over after every attempt, and two events are a full batch
        claimer.DRAIN_BUDGET, claimer.CLAIM_BATCH = timedelta(0), 2
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    name = f"worker-{os.getpid()}-{time.monotonic_ns()}"
    listening = worker.Worker([worker.QUEUE], connection=client, name=name, claimer=made)
    listening.work(burst=True, logging_level="ERROR")


def _beat():
    """Renew leases as often as a story says: otherwise time passes for a worker only where the story has it pass."""
    from hookonce.receiver.ledger.runs import leases  # noqa: PLC0415  of no use to receivers

    leases.RENEW_INTERVAL = timedelta(seconds=float(os.environ.get("STORY_BEAT") or 3600))


def _work_many(_listener, *, tight):
    """Work with three slots, until nothing is under way."""
    from hookonce.jobs import drain  # noqa: PLC0415  of no use to receivers
    from hookonce.jobs.slots.pool import Pool  # noqa: PLC0415  same

    pool = Pool(*drain.configured(), slots=3)
    _answer(pool, tight=tight)
    with suppress(DeadlineMissed):
        until(lambda: pool.is_idle, seconds=MOST_SECONDS)
    pool.finish()


def _work_on(_listener, *, tight):  # noqa: ARG001
    """Work as `hookonce worker` does, until told to stop."""
    from hookonce.jobs import drain, worker  # noqa: PLC0415  same
    from hookonce.jobs.slots.single_slot import SingleSlot  # noqa: PLC0415  same

    worker.work(SingleSlot(*drain.configured()), os.environ["REDIS_URL"])


def _sweep(_listener, *, tight):  # noqa: ARG001
    from hookonce.jobs.maintenance.sweep import Sweep  # noqa: PLC0415

    Sweep(load_settings(need_secrets=False)).once()


ROLES = {
    "receive": _receive,
    "work": _work,
    "work_in_django": _work_in_django,
    "work_many": _work_many,
    "work_on": _work_on,
    "sweep": _sweep,
}


def _warm(kind):
    """Import what the children will need, and go once through what is slow the first time."""
    for name in NEEDED[kind]:
        import_module(name)
    for name in ("stripe", "github", "depot"):
        registry.load(name, [str(SENDERS)])  # installed entry points are read and remembered
    datetime.strptime("2026", "%Y")  # noqa: DTZ007  imports a module
    if kind == "receivers":
        client = (
            import_module("hookonce.receiver.app")
            .create_app(Settings("", "redis://", {}, desk="door"))
            .test_client()
        )
        client.get("/livez")
        import_module("tests.support.stories.gunicorn_child").application()
    else:
        engines.engine("postgresql:///")  # imports the dialect
    gc.collect()
    gc.freeze()


NEEDED = {
    "receivers": ("encodings.ascii",),
    "workers": (
        "encodings.ascii",
        "hookonce.jobs.attempts.orm_session",
        "hookonce.jobs.worker",
        "hookonce.jobs.maintenance.sweep",
        "hookonce.jobs.slots.pool",
        "tests.support.stories.handlers",
        "tests.support.stories.outside",
    ),
    "django": (
        "django.db.backends.postgresql.base",
        "django.db.models.sql.compiler",
        "encodings.ascii",
        "hookonce.jobs.attempts.django_transaction",
        "hookonce.jobs.worker",
        "hookonce.jobs.maintenance.sweep",
        "tests.support.django_project",
        "tests.support.stories.django_handlers",
    ),
}


if __name__ == "__main__":
    _warm(sys.argv[1])
    _serve_requests()
