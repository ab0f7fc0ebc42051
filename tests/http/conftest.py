"""A running `hookonce serve` for each module: gunicorn, real PostgreSQL and Valkey.

With our worker, and with gunicorn's own of gevent: the same core answers behind both.
"""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import psycopg
import pytest

from hookonce.providers.kit.registry import load
from tests.support import raw_http
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
PARTNER = {
    "header": "X-Signature",
    "signed": "{timestamp}.{body}",
    "timestamp": "X-Time",
    "id": "$.id",
    "type": "$.event",
}
SENDERS = {
    name: load(name) for name in ("stripe", "github", "gitlab", "slack", "shopify", "standard_webhooks")
}
SENDERS |= {"billing": load("stripe"), "partner": load("hmac", options=PARTNER)}
SECRETS = {
    name: "whsec_" + "c2VjcmV0" * 4 if name == "standard_webhooks" else f"this-is-the-secret-of-{name}-itself"
    for name in SENDERS
}
CONFIGURATION = """
[receiver]
max_body = {max_body}
[admin]
hosts = ["test"]
[sources.stripe]
secrets = ["env:SECRET_STRIPE"]
[sources.billing]
provider = "stripe"
secrets = ["env:SECRET_BILLING"]
conflicts = "reject"
[sources.github]
secrets = ["env:SECRET_GITHUB"]
[sources.gitlab]
secrets = ["env:SECRET_GITLAB"]
[sources.slack]
secrets = ["env:SECRET_SLACK"]
[sources.shopify]
secrets = ["env:SECRET_SHOPIFY"]
[sources.standard_webhooks]
secrets = ["env:SECRET_STANDARD_WEBHOOKS"]
[sources.partner]
provider = "hmac"
secrets = ["env:SECRET_PARTNER"]
[sources.partner.hmac]
header = "X-Signature"
signed = "{{timestamp}}.{{body}}"
timestamp = "X-Time"
id = "$.id"
type = "$.event"
[sources.keyless]
provider = "stripe"
secrets = ["env:SECRET_KEYLESS?"]
"""
OTHER_WORKER = ("--worker-class", "gevent")


class Server:
    """A running receiver: where it listens, what it logged, what its ledger holds."""

    def __init__(self, port, process, log, database_url, max_body, context=None, *, is_ours=True):
        self.port = port
        self.process = process
        self.log = log
        self.database_url = database_url
        self.max_body = max_body
        self.context = context
        self.is_ours = is_ours

    def exchange(self, data, **options):
        return raw_http.exchange(self.port, data, context=self.context, **options)

    def deliver(self, body, source="stripe", *, now=None, extra=(), **said):
        """Sign as the sender would, send, and give the answer."""
        return self.exchange(self.signed(body, source, now=now, extra=extra, **said))

    def signed(self, body, source="stripe", *, now=None, extra=(), **said):
        headers = SENDERS[source].sign(body, SECRETS[source], now or datetime.now(UTC), **said)
        return raw_http.request(target=f"/hooks/{source}", headers=[*headers.items(), *extra], body=body)

    def events(self):
        with psycopg.connect(self.database_url) as connection:
            return connection.execute("SELECT count(*) FROM hookonce.event_states").fetchone()[0]

    def logged(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def workers(self):
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text("ascii")
        return [int(pid) for pid in children.split()]


@contextlib.contextmanager
def serving(
    directory, database_url, redis_url, *, max_body=1024 * 1024, options=(), context=None, **environment
):
    """Run `hookonce serve` with one worker, so that nobody can hide behind another; under TLS with a `context`."""
    (directory / "hookonce.toml").write_text(CONFIGURATION.format(max_body=max_body))
    log = directory / "serve.log"
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    with listener, log.open("wb") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "hookonce.receiver.cli",
                "serve",
                "--bind",
                f"fd://{listener.fileno()}",
                *options,
            ],
            cwd=directory,
            env=_environment(database_url, redis_url) | environment,
            stdout=output,
            stderr=output,
            pass_fds=[listener.fileno()],
        )
        port = listener.getsockname()[1]
    is_ours = OTHER_WORKER[0] not in options
    server = Server(port, process, log, database_url, max_body, context, is_ours=is_ours)
    try:
        _await(server)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2)
        process.kill() if process.poll() is None else None
        process.wait()


def _environment(database_url, redis_url):
    foreign = ("HOOKONCE_", "GUNICORN_", "PG")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    secrets = {f"SECRET_{name.upper()}": secret for name, secret in SECRETS.items()}
    return (
        kept
        | secrets
        | {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "HOOKONCE_DESK": "door",
            "WEB_CONCURRENCY": "1",
            "HOOKONCE_LOG_LEVEL": "INFO",
            "PYTHONPATH": str(ROOT),
        }
    )


def _await(server):
    def status():
        answer = server.exchange(raw_http.request("GET", "/livez"), seconds=2)
        return answer and answer.status

    try:
        until(status, 200, what="the receiver's start", seconds=60, away=OSError, process=server.process)
    except AssertionError as error:
        raise AssertionError(server.logged()) from error


@pytest.fixture(scope="module")
def many_files():
    """Let this process have as many connections as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard > 0 else 65536, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def receivers(fresh_database, fresh_redis, tmp_path_factory):
    """Running receivers for the module's tests; at the end our worker's log holds no traceback and no secret."""
    with contextlib.ExitStack() as stack:

        @cache
        def running(options):
            directory = tmp_path_factory.mktemp("serve")
            urls = stack.enter_context(fresh_database()), stack.enter_context(fresh_redis())
            return stack.enter_context(serving(directory, *urls, options=options))

        yield running
        log = running(()).logged()  # others quote what is not HTTP
        assert "Traceback" not in log
        assert not [name for name, secret in SECRETS.items() if secret in log]


@pytest.fixture(params=[(), OTHER_WORKER], ids=["ours", "gevent"])
def server(request, receivers):
    """A running receiver, of our worker and of gunicorn's own."""
    return receivers(request.param)


@pytest.fixture(scope="module")
def attacked(fresh_database, fresh_redis, tmp_path_factory):
    """A context manager: a receiver to be attacked, in plain or under TLS."""
    from tests.http import attacked  # noqa: PLC0415  it needs this module

    @contextlib.contextmanager
    def running(kind):
        with fresh_database() as database_url, fresh_redis() as redis_url:
            directory = tmp_path_factory.mktemp("serve")
            with attacked.attacked(kind, directory, database_url, redis_url) as server:
                yield server

    return running


OURS = pytest.mark.parametrize("server", [()], indirect=True, ids=["ours"])
"""Of a test of what our worker promises beyond what every WSGI server can."""
