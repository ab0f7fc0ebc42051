import pytest

from hookonce.receiver.ledger import alerts

pytestmark = pytest.mark.usefixtures("inbox")


@pytest.fixture
def alert(ledger):
    return alerts.raise_alert(ledger, "dead_runs", "stripe", "2 events died")


@pytest.mark.usefixtures("alert")
def test_alerts_lists_what_is_open(hookonce, ledger):
    alerts.resolve(ledger, alerts.raise_alert(ledger, "oldest_due", "", "over"))

    (document,) = hookonce("alerts", "list", "--json").documents

    assert (document["kind"], document["subject"], document["ended_at"]) == ("dead_runs", "stripe", None)


def test_alerts_lists_what_is_over_if_asked(hookonce, ledger, alert):
    alerts.resolve(ledger, alert)

    assert hookonce("alerts", "list").out == b""
    assert [document["detail"] for document in hookonce("alerts", "list", "--all", "--json").documents] == [
        "2 events died"
    ]


def test_alerts_test_needs_somebody_to_tell(hookonce):
    run = hookonce("alerts", "test")

    assert (run.code, "has no target" in run.err) == (78, True)


def test_alerts_test_stores_an_event_of_our_own(hookonce, inbox, ledger, rings):
    with (inbox / "hookonce.toml").open("a") as file:
        file.write('[alerts]\nurls = ["https://a.example/in"]\nsecret = "env:ABSENT"\n')

    run = hookonce("alerts", "test", "--wait", "0s")

    assert run.code == 0
    assert ledger.execute("SELECT source, type FROM hookonce.event_states").fetchall() == [
        ("hookonce", "alert.test")
    ]
    assert rings() == 1


@pytest.mark.usefixtures("alert")
@pytest.mark.parametrize("command", ["stats", "doctor"])
def test_command_shows_open_alerts(hookonce, command):
    assert b"dead_runs stripe: 2 events died" in hookonce(command).out
