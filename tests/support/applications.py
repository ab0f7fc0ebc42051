"""The examples under the servers that people run them with.

Their programs are forked from an interpreter that has imported the libraries (tests/support/warm_python.py), unless
`cold` is asked for.
"""

import atexit
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import psycopg

from hookonce.providers.kit.registry import load
from tests.support import raw_http
from tests.support.warm_python import WarmPython

EXAMPLES = Path(__file__).parents[2] / "examples"
SECRET = "whsec_b2YgdGhlIGV4YW1wbGVz"
MAX_BODY = 256 * 1024
DEADLINE = 60
PROGRAM = Path(sys.executable).parent
GUNICORN = ("-m", "gunicorn", "--workers", "1", "--bind", "fd://{fd}", "--no-control-socket")
UVICORN = ("-m", "uvicorn", "--fd", "{fd}", "--log-level", "warning")
PATCHES_BEFORE_IMPORTS = {"gevent", "python:hookonce.receiver.web.gunicorn_conf"}
SERVERS = {
    "flask under gunicorn gevent": ("flask", (*GUNICORN, "-k", "gevent", "app:app")),
    "flask under gunicorn gthread": ("flask", (*GUNICORN, "-k", "gthread", "--threads", "16", "app:app")),
    "flask under gunicorn sync": ("flask", (*GUNICORN, "-k", "sync", "app:app")),
    "flask under hookonce's gunicorn worker": (
        "flask",
        (*GUNICORN, "-c", "python:hookonce.receiver.web.gunicorn_conf", "app:app"),
    ),
    "fastapi under uvicorn": ("fastapi", (*UVICORN, "app:app")),
    "django under gunicorn gevent": ("django", (*GUNICORN, "-k", "gevent", "project.wsgi")),
    "django under gunicorn gthread": (
        "django",
        (*GUNICORN, "-k", "gthread", "--threads", "16", "project.wsgi"),
    ),
    "django under uvicorn": ("django", (*UVICORN, "project.asgi:application")),
}
MAKE_TABLES = {
    "flask": ("-m", "flask", "--app", "app", "create-tables"),
    "django": ("manage.py", "migrate", "--verbosity", "0"),
    "fastapi": ("-c", "import asyncio, app; asyncio.run(app.lifespan(app.app).__aenter__())"),
}
WORKER = {
    "flask": ("-m", "flask", "--app", "app", "hookonce", "worker"),
    "fastapi": ("-m", "hookonce.receiver.cli", "worker"),
    "django": ("manage.py", "hookonce_worker"),
}
TABLE = {"flask": "payments", "fastapi": "payments", "django": "shop_payment"}
LIBRARIES = {
    "flask": (
        "flask.cli",
        "flask_sqlalchemy",
        "sqlalchemy.dialects.postgresql.psycopg",
        "hookonce.flask.cli",
        "hookonce.flask.transactions",
    ),
    "fastapi": (
        "fastapi",
        "uvicorn",
        "sqlmodel.ext.asyncio.session",
        "sqlalchemy.dialects.postgresql.psycopg",
    ),
    "django": ("django.core.management", "django.db.backends.postgresql.base", "hookonce.django.ledger"),
}
PROVIDER = load("stripe")


def paid(number, cents=4900, **more):
    document = {"id": f"evt_{number}", "type": "invoice.paid", "created": int(time.time())} | more
    document["data"] = {"object": {"id": f"in_{number}", "amount_paid": cents}}
    return json.dumps(document).encode()


@cache
def warm(name):
    """Return the interpreter from which what an example needs is forked, until this process ends."""
    found = WarmPython(*LIBRARIES[name], "hookonce.jobs.worker", "hookonce.receiver.cli", "hookonce.jobs.cli")
    atexit.register(found.close)
    return found


class Project:
    """A copy of an example, with servers of the test's own."""

    def __init__(self, name, directory, database_url, redis_url):
        self.name = name
        self.database_url = database_url
        self.directory = Path(directory) / name
        shutil.copytree(EXAMPLES / name, self.directory, ignore=shutil.ignore_patterns("__pycache__"))
        configuration = self.directory / "hookonce.toml"
        found = configuration.read_text() if configuration.exists() else "[receiver]\n"
        configuration.write_text(f"{found}max_body = {MAX_BODY}\n")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HOOKONCE_", "GUNICORN_", "PG"))}
        self.environ = kept | {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "HOOKONCE_SECRET__STRIPE": SECRET,
            "DJANGO_SETTINGS_MODULE": "project.settings",
        }

    def run(self, *arguments, check=True, cold=False, **environ):
        output, error = self.directory / "stdout", self.directory / "stderr"
        with output.open("wb") as out, error.open("wb") as err:
            process = self._start(arguments, environ, out, err, cold=cold)
        try:
            process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        done = subprocess.CompletedProcess(
            arguments, process.returncode, output.read_text(), error.read_text()
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    def start(self, *arguments, pass_fds=(), cold=False, **environ):
        with (self.directory / "output").open("ab") as output:
            return self._start(arguments, environ, output, output, pass_fds, cold=cold)

    def _start(self, arguments, environ, output, error, pass_fds=(), *, cold):
        options = {"cwd": self.directory, "env": self.environ | environ, "pass_fds": pass_fds}
        if cold:
            return subprocess.Popen([sys.executable, *arguments], stdout=output, stderr=error, **options)
        return warm(self.name).start(arguments, output=output, error=error, **options)

    def make_tables(self):
        self.run(*MAKE_TABLES[self.name])

    def query(self, statement):
        with psycopg.connect(self.database_url) as connection:
            return connection.execute(statement).fetchall()

    @property
    def said(self):
        return (self.directory / "output").read_text()

    @contextlib.contextmanager
    def serving(self, command):
        """Run a server as long as the block lasts; give what talks to it."""
        with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
            words = [word.format(fd=listener.fileno()) for word in command]
            patches = PATCHES_BEFORE_IMPORTS & set(command)
            process = self.start(*words, pass_fds=[listener.fileno()], cold=bool(patches))
            port = listener.getsockname()[1]
        try:
            yield Served(self, port, process)
        finally:
            end(process)


class Served:
    """An application that is up, or will be when it has accepted."""

    def __init__(self, project, port, process):
        self.project, self.port, self.process = project, port, process

    def exchange(self, data, **options):
        return raw_http.exchange(self.port, data, **{"seconds": DEADLINE} | options)

    def signed(self, body, secret=SECRET, now=None, target="/hooks/stripe"):
        headers = PROVIDER.sign(body, secret, now or datetime.now(UTC))
        return raw_http.request(target=target, headers=[("Host", "localhost"), *headers.items()], body=body)

    def deliver(self, body, **options):
        return self.exchange(self.signed(body, **options))

    def get(self, target):
        return self.exchange(raw_http.request("GET", target, [("Host", "localhost")]))


def end(process):
    process.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)
    if process.poll() is None:
        process.kill()
    process.wait()
