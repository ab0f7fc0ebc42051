import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from hookonce.jobs.handlers import Registry
from hookonce.jobs.slots.single_slot import SingleSlot
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.ledger import alerts
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("inbox")


@pytest.fixture
def alert(ledger):
    return alerts.raise_alert(ledger, "dead_runs", "stripe", "2 events died")


def test_alerts_lists_what_is_open_and_what_is_over_if_asked(hookonce, ledger, alert):
    alerts.resolve(ledger, alerts.raise_alert(ledger, "oldest_due", "", "over"))

    before = hookonce("alerts", "list", "--json").documents
    alerts.resolve(ledger, alert)

    assert [(each["kind"], each["subject"], each["ended_at"]) for each in before] == [
        ("dead_runs", "stripe", None)
    ]
    assert hookonce("alerts", "list").out == b""
    assert len(hookonce("alerts", "list", "--all", "--json").documents) == 2


def test_alerts_test_needs_somebody_to_tell(hookonce):
    run = hookonce("alerts", "test")

    assert (run.code, "has no target" in run.err) == (78, True)


@pytest.fixture
def target(inbox):
    with (inbox / "hookonce.toml").open("a") as file:
        file.write('[alerts]\nurls = ["https://a.example/in"]\nsecret = "env:ABSENT"\n')


@pytest.mark.usefixtures("target")
def test_alerts_test_stores_an_event_of_our_own(hookonce, ledger, rings):
    run = hookonce("alerts", "test", "--wait", "0s")

    assert run.code == 0
    assert ledger.execute("SELECT source, type FROM hookonce.event_states").fetchall() == [
        ("hookonce", "alert.test")
    ]
    assert rings() == 1


@pytest.mark.usefixtures("target", "rings")
def test_alerts_test_fails_within_seconds_where_no_worker_is_running(hookonce):
    began = time.monotonic()

    run = hookonce("alerts", "test")

    assert time.monotonic() - began < 20
    assert (run.code, "no worker is running" in run.err, "start `hookonce worker`" in run.err) == (
        1,
        True,
        True,
    )


@pytest.mark.usefixtures("target")
def test_alerts_test_fails_where_no_worker_took_it_in_time(hookonce):
    run = hookonce("alerts", "test", "--wait", "1s")

    assert (run.code, "no worker took it within 1 s" in run.err) == (1, True)


@pytest.mark.usefixtures("target")
def test_alerts_test_fails_where_workers_know_no_target(hookonce, ledger, database_url, redis_url):
    settings = load_settings(
        {"DATABASE_URL": database_url, "REDIS_URL": redis_url, "HOOKONCE_CONFIG": "/dev/null"}
    )
    ignored = "SELECT FROM hookonce.event_states WHERE status = 'ignored'"
    with ThreadPoolExecutor(1) as threads, closing(SingleSlot(settings, Registry())) as worker:
        threads.submit(until, lambda: worker.run_due() or ledger.execute(ignored).fetchone() is not None)
        run = hookonce("alerts", "test")

    assert (run.code, "restart workers with this configuration" in run.err) == (1, True)


@pytest.mark.usefixtures("alert")
@pytest.mark.parametrize("command", ["doctor", "stats"])
def test_command_shows_open_alerts(hookonce, command):
    assert "dead_runs stripe: 2 events died" in hookonce(command).out.decode()
