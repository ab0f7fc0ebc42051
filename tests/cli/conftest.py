import json
from types import SimpleNamespace

import psycopg
import pytest
import redis

from hookonce.receiver.cli import main
from hookonce.receiver.ledger import store
from hookonce.receiver.redis.work_queue import WorkQueue
from tests.support.outcomes import put_into_state

TABLES = """
[sources.stripe]
provider = "stripe"
secrets = ["env:STRIPE_SECRET"]
[sources.github]
provider = "github"
secrets = ["env:GITHUB_SECRET"]
repeats = "hold"
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A directory with a configuration, and no variable of the machine's that could matter."""
    for name in (
        "DATABASE_URL",
        "REDIS_URL",
        "PORT",
        "HOOKONCE_CONFIG",
        "HOOKONCE_DATA",
        "HOOKONCE_HANDLERS",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STRIPE_SECRET", "whsec_of_the_tests")
    monkeypatch.setenv("GITHUB_SECRET", "hub secret of the tests")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hookonce.toml").write_text(TABLES)
    return tmp_path


@pytest.fixture
def inbox(place, monkeypatch, database_url):
    """An inbox with a ledger and no Redis: commands must do with the ledger alone."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    return place


@pytest.fixture
def ledger(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def hookonce(monkeypatch, capfdbinary):
    """Run a command as the shell does; gives code, stdout as bytes, its lines, its JSON lines, and stderr."""

    def run(*arguments):
        capfdbinary.readouterr()
        monkeypatch.setattr("sys.argv", ["hookonce", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfdbinary.readouterr()
        lines = out.decode(errors="replace").splitlines()
        return SimpleNamespace(
            code=int(ended.value.code or 0),
            out=out,
            err=err.decode(),
            lines=lines,
            documents=[json.loads(line) for line in lines if line.startswith('{"')],
        )

    return run


@pytest.fixture
def stored(ledger):
    """Put an event into the ledger, as a delivery would, then into any state; gives its id."""

    def put(event_id, *, body=b"{}", status=None, runs=(), unreadable=None, **columns):
        source = columns.get("source", "stripe")
        event = arriving(source, event_id, columns.get("type", "invoice.paid"), body)
        row = store.store(ledger, [event._replace(unreadable=unreadable)])
        number = row[source, event_id].id
        put_into_state(ledger, number, status, runs)
        return number

    return put


def arriving(source, event_id, kind, body):
    return store.NewEvent(
        source=source,
        provider=source,
        event_id=event_id,
        type=kind,
        account=None,
        fingerprint=body.ljust(32)[:32],
        id_is_signed=source == "stripe",
        occurred_at=None,
        url=f"/hooks/{source}",
        headers='{"x-a": "b"}',
        body=body,
    )


@pytest.fixture
def rings(monkeypatch, redis_url):
    """Give the inbox a Redis; counts the rings that wait there."""
    monkeypatch.setenv("REDIS_URL", redis_url)

    def count():
        with redis.Redis.from_url(redis_url) as client:
            return WorkQueue(client).pending()

    return count
