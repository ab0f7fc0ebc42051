from click.testing import CliRunner

from hookonce.jobs.configured.cli import forwards
from hookonce.receiver.ledger.steps import idempotency_key
from tests.support.forwarding import configured, forward


def run(inbox, tmp_path, *command):
    environ = {
        "DATABASE_URL": inbox.settings.database_url,
        "REDIS_URL": inbox.settings.redis_url,
        "HOOKONCE_CONFIG": str(tmp_path / "hookonce.toml"),
    }
    return CliRunner().invoke(forwards, command, env=environ)


def test_event_is_sent_now_without_a_run(inbox, tmp_path, nats_broker):
    configured(inbox, tmp_path, forward(nats_broker.url()))
    (number,) = inbox.deliver("a", body=b'{"id": "a"}')

    said = run(inbox, tmp_path, "try", "out", "--event", str(number))

    assert said.exit_code == 0, said.output
    assert said.output == f"sent event {number} to {nats_broker.url()}\n"
    ((headers, body),) = nats_broker.messages()
    assert body == b'{"id": "a"}'
    assert headers["Nats-Msg-Id"] == idempotency_key("stripe", "a", "forwards.out") + "-0"
    assert inbox.rows("SELECT FROM hookonce.runs") == []


def test_event_that_is_not_taken_says_why(inbox, tmp_path, nats_broker):
    configured(inbox, tmp_path, forward(nats_broker.url("other")))
    (number,) = inbox.deliver("a")

    said = run(inbox, tmp_path, "try", "out", "--event", str(number))

    assert said.exit_code == 1
    assert "no stream covers other" in said.output


def test_forwards_are_listed_without_passwords(inbox, tmp_path):
    configured(inbox, tmp_path, forward("nats://host/orders", types=["invoice.*"]))

    said = run(inbox, tmp_path, "list")

    assert said.output == "out  stripe invoice.*  nats://host/orders\n"
