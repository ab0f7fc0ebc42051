"""A laptop sleeps for hours while events of ten senders come to production: afterwards it gets all, in order, once."""

import re
import signal
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import replace

import psycopg
import pytest
from psycopg import sql

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver.app import create_app
from hookonce.receiver.desk.feeds import pulls
from hookonce.receiver.dev.stack import free_port
from tests.api.conftest import open_inbox
from tests.remote.conftest import serving
from tests.support import production
from tests.support.dev_stack import HOOKONCE, clean
from tests.support.production import CARD, TEN, github
from tests.support.program import program
from tests.support.waiting import until

SIZES = [200, pytest.param(5000, marks=pytest.mark.long)]
LONG_ENOUGH = 240


@pytest.fixture
def there(database_url, redis_url, monkeypatch):
    """A production inbox that ten senders send to."""
    monkeypatch.setattr(pulls, "STATEMENT_PAUSE", 0.02)
    with open_inbox(database_url, redis_url) as inbox:
        inbox.settings = replace(inbox.settings, sources=production.sources())
        inbox.app = create_app(inbox.settings)
        yield inbox
        inbox.app.extensions["hookonce"].close()


class Child:
    """A command that runs until it is ended; what it prints is kept."""

    def __init__(self, place, *command, **environ):
        self.lines = []
        self.process = subprocess.Popen(
            [*HOOKONCE, *command],
            cwd=place,
            env=clean(XDG_CONFIG_HOME=str(place / "config"), XDG_STATE_HOME=str(place / "state"), **environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with self.process.stdout as stdout:
            self.lines.extend(iter(stdout.readline, ""))

    @property
    def output(self):
        return "".join(self.lines)

    def until(self, text):
        until(lambda: text in self.output, process=self.process, seconds=60, what=text)

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        status = self.process.wait(30)
        self._reader.join(30)
        return status


@contextmanager
def running(place, *command, **environ):
    child = Child(place, *command, **environ)
    try:
        yield child
    finally:
        child.process.send_signal(signal.SIGCONT)
        child.end(signal.SIGKILL)


def login(place, served, name="ada"):
    token = served.token(name, "read", "bodies")
    done = subprocess.run(
        [*HOOKONCE, "login", served.url, "--name", "prod"],
        input=token,
        env=clean(XDG_CONFIG_HOME=str(place / "config")),
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("count", SIZES)
def test_program_gets_all_that_came_while_the_laptop_slept(there, tmp_path, count):
    verdicts = []

    def answer(came):
        name = came.path.rpartition("/")[2]
        verifier = next(each for each in TEN if each.name == name)
        verdicts.append(bool(verifier.takes(came.delivery, secrets[name])))
        return 200

    secrets = {}
    with program(answer=answer) as target, serving(there) as served:
        login(tmp_path, served)
        address = f"http://localhost:{target.port}/hooks/{{source}}"
        with running(tmp_path, "listen", "prod", "--forward", address) as laptop:
            laptop.until("ready: ")
            secrets |= secrets_of(laptop.output)
            first = production.deliver(there.connection, 20)
            until(lambda: len(target.came) == 20, process=laptop.process)

            laptop.process.send_signal(signal.SIGSTOP)
            there.connection.execute("UPDATE hookonce.audit SET at = at - interval '25 hours'")
            slept = production.deliver(there.connection, count - 20)
            production.passes(there.connection, 8)
            laptop.process.send_signal(signal.SIGCONT)

            until(lambda: len(target.came) == count, process=laptop.process, seconds=LONG_ENOUGH)
            assert laptop.end() == 0
            assert "stopped; the next start goes on from here" in laptop.output

    there_now = first + slept
    assert target.origins == [number for number, _, _ in there_now]
    assert verdicts == [True] * count
    for came, (_, name, body) in zip(target.came, there_now, strict=True):
        batch = load(name).batch if name == "twilio_sendgrid_events" else None
        assert came.delivery.body == (batch(body) if batch else body)
        assert came.delivery.headers.get("hookonce-redacted") == ("yes" if name == "github" else None)
        assert CARD.encode() not in came.delivery.body


def test_program_gets_each_once_though_listen_is_stopped_and_the_network_cut(there, tmp_path):
    with program() as target:
        with serving(there) as served:
            login(tmp_path, served)
            command = ("listen", "prod", "--forward", target.url, "--since", "1h")
            sent = [number for number, _, _ in production.deliver(there.connection, 60)]
            for number in (signal.SIGINT, signal.SIGTERM):
                before = len(target.came)
                with running(tmp_path, *command) as stopped:
                    until(lambda least=before: len(target.came) > least, process=stopped.process)
                    assert stopped.end(number) == 0
                assert "stopped; the next start goes on from here" in stopped.output
        with running(tmp_path, *command) as waiting:
            waiting.until("it is tried again until it answers")
            with serving(there, port=served.port):
                until(lambda: len(target.came) == len(sent), process=waiting.process, seconds=60)

    assert target.origins == sent


def secrets_of(output):
    """The secrets by source, as `listen` prints them; the public half where it is a pair."""
    found = dict(re.findall(r"^(\w+) +secret (\S+)$", output, re.MULTILINE))
    for name, key in re.findall(
        r"^(\w+) +signed with a private .*\n-----BEGIN PUBLIC KEY-----\n([^-]+)-----END", output, re.MULTILINE
    ):
        found[name] = key.replace("\n", "")
    return found


@pytest.mark.parametrize("count", SIZES)
def test_inbox_at_hand_gets_all_that_came_while_the_laptop_slept(
    there, fresh_database, fresh_redis, tmp_path, count
):
    (tmp_path / "hookonce.toml").write_text(
        '[sources.github]\nprovider = "github"\nsecrets = ["env:GITHUB_SECRET"]\n'
    )
    with fresh_database() as url, fresh_redis() as redis_url, psycopg.connect(url, autocommit=True) as here:
        environ = {"DATABASE_URL": url, "REDIS_URL": redis_url, "GITHUB_SECRET": "of the developer"}
        pull = ("dev", "--port", str(free_port()), "--from", "prod", "--since", "12h", "--follow")
        with serving(there) as served:
            login(tmp_path, served)
            first = production.deliver(there.connection, 20)
            with running(tmp_path, *pull, **environ) as laptop:
                until(lambda: len(names(here)) == 20, process=laptop.process, seconds=60)
                laptop.process.send_signal(signal.SIGSTOP)
                slept = production.deliver(there.connection, count // 2)
                production.passes(there.connection, 8)
                laptop.process.send_signal(signal.SIGCONT)
                until(lambda: len(names(here)) > 20, process=laptop.process)
            slept += production.deliver(there.connection, count - 20 - count // 2)
        with serving(there, port=served.port), running(tmp_path, *pull, **environ) as laptop:
            until(lambda: len(names(here)) == count, process=laptop.process, seconds=LONG_ENOUGH)

        there_now = first + slept
        assert [int(number) for number in names(here)] == [number for number, _, _ in there_now]
        kept = here.execute("SELECT b.body, b.headers FROM hookonce.bodies b ORDER BY event").fetchall()
        for (body, headers), (_, name, sent) in zip(kept, there_now, strict=True):
            assert bytes(body) == sent
            assert headers.get("hookonce-redacted") == ("yes" if name == "github" else None)
            if name == "github":
                assert github(Delivery("POST", "", headers, bytes(body)), "of the developer")
        assert here.execute("SELECT count(*) FROM hookonce.events WHERE NOT is_test").fetchone() == (0,)
        assert holders_of(here, CARD) == []
        assert holders_of(here, "hookonce-redacted") != []


def names(here):
    """The ledger ids there, in the order of the ledger here."""
    rows = here.execute("SELECT headers->>'hookonce-origin' FROM hookonce.bodies ORDER BY event").fetchall()
    return [origin.split()[1] for (origin,) in rows]


def holders_of(here, text):
    """Every table with a row that holds a text, as text or as bytes: a dump would hold it too."""
    tables = here.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'hookonce'").fetchall()
    wanted = [f"%{form}%" for form in (text, text.encode().hex())]
    return [
        table
        for (table,) in tables
        if here.execute(
            sql.SQL("SELECT 1 FROM hookonce.{} t WHERE t::text LIKE ANY (%s) LIMIT 1").format(
                sql.Identifier(table)
            ),
            [wanted],
        ).fetchone()
    ]
