import json
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.jobs.configured import forwards
from hookonce.jobs.handlers import HandlerError
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.ledger.stats import run_durations
from hookonce.receiver.ledger.steps import idempotency_key
from tests.support.forwarding import configured, errors, forward, results, work

KEY = idempotency_key("stripe", "a", "forwards.out")


def test_message_has_the_run_s_key_and_the_headers_of_cloudevents(inbox, tmp_path, nats_broker):
    configured(inbox, tmp_path, forward(nats_broker.url()))
    body = b'{"data": {"object": {"id": "cus_1"}}}'
    inbox.deliver("a", body=body, type="customer.updated", occurred_at=datetime(2026, 1, 1, tzinfo=UTC))

    work(inbox)

    ((headers, data),) = nats_broker.messages()
    assert results(inbox) == {"a": ("done", None)}
    assert data == body
    assert headers["Nats-Msg-Id"] == f"{KEY}-1"
    assert headers["ce-specversion"] == "1.0"
    assert headers["ce-id"] == "a"
    assert headers["ce-source"] == "/hooks/stripe"
    assert headers["ce-type"] == "customer.updated"
    assert headers["ce-time"] == "2026-01-01T00:00:00Z"


def test_replay_has_another_id_and_an_attempt_the_same(inbox, tmp_path, nats_broker):
    configured(inbox, tmp_path, forward(nats_broker.url()))
    inbox.deliver("a")
    work(inbox)
    again = (
        "INSERT INTO hookonce.queue (event, received_at, source, type, handler, cycle, due_at) "
        "SELECT id, received_at, source, type, 'forwards.out', {}, now() FROM hookonce.events"
    )

    inbox.connection.execute(again.format(2))
    work(inbox)

    assert [headers["Nats-Msg-Id"] for headers, _ in nats_broker.messages()] == [f"{KEY}-1", f"{KEY}-2"]


def test_batch_is_sent_whole_and_each_event_once(inbox, tmp_path, nats_broker):
    configured(inbox, tmp_path, forward(nats_broker.url()))
    ids = [f"e{n}" for n in range(250)]
    inbox.deliver(*ids)

    work(inbox)

    assert sorted(headers["ce-id"] for headers, _ in nats_broker.messages()) == sorted(ids)


def test_only_events_of_the_types_are_taken(inbox, tmp_path, nats_broker):
    configured(inbox, tmp_path, forward(nats_broker.url(), types=["invoice.*", "charge.failed"]))
    inbox.deliver("a", type="invoice.paid")
    inbox.deliver("b", type="charge.failed")
    inbox.deliver("c", type="charge.succeeded")

    work(inbox)

    assert set(results(inbox)) == {"a", "b"}


def test_when_decides_and_its_failure_is_no_match_and_counted(inbox, tmp_path, nats_broker):
    when = "starts_with(data.object.currency, 'e') && data.object.amount > `1000`"
    configured(inbox, tmp_path, forward(nats_broker.url(), when=when))
    for name, currency, amount in (("a", "eur", 2000), ("b", "eur", 10), ("c", 7, 2000)):
        paid = {"currency": currency, "amount": amount}
        body = {"id": name, "type": "invoice.paid", "data": {"object": paid}}
        inbox.deliver(name, body=json.dumps(body).encode())

    work(inbox)

    assert results(inbox) == {
        "a": ("done", None),
        "b": ("done", {"skipped": "no match"}),
        "c": ("done", {"skipped": "when failed"}),
    }
    assert [headers["ce-id"] for headers, _ in nats_broker.messages()] == ["a"]
    now = datetime.now(UTC)
    counted = run_durations.uncounted(inbox.connection, now - timedelta(hours=1), now + timedelta(hours=1))
    assert ("forwards.out", "when-failed", 1) in counted


def test_event_that_is_too_large_is_dead_with_its_size_and_others_go(inbox, tmp_path, nats_broker):
    configured(inbox, tmp_path, forward(nats_broker.url()))
    inbox.deliver("a", "b")
    inbox.deliver("large", body=b'"' + b"x" * 2_000_000 + b'"')

    work(inbox)

    assert sorted(headers["ce-id"] for headers, _ in nats_broker.messages()) == ["a", "b"]
    assert results(inbox)["large"][0] == "dead"
    assert "bytes are more than the 1,048,576" in errors(inbox)["large"]


def test_subject_that_no_stream_covers_is_a_failure_that_says_so(inbox, tmp_path, nats_broker):
    configured(inbox, tmp_path, forward(nats_broker.url("other.subject"), attempts=1))
    inbox.deliver("a")

    work(inbox)

    assert results(inbox)["a"][0] == "dead"
    assert "no stream covers other.subject" in errors(inbox)["a"]


def test_event_whose_body_is_gone_is_dead_with_the_reason(inbox, tmp_path, nats_broker):
    configured(inbox, tmp_path, forward(nats_broker.url()))
    inbox.deliver("a", "b")
    inbox.connection.execute(
        "DELETE FROM hookonce.bodies WHERE event = (SELECT id FROM hookonce.events WHERE event_id = 'a')"
    )

    work(inbox)

    assert results(inbox)["a"][0] == "dead"
    assert "the body of event" in errors(inbox)["a"]
    assert [headers["ce-id"] for headers, _ in nats_broker.messages()] == ["b"]


def test_event_is_not_forwarded_to_where_it_was(inbox, tmp_path, nats_broker):
    configured(inbox, tmp_path, forward(nats_broker.url()))
    inbox.deliver("a")
    work(inbox)
    ((headers, _),) = nats_broker.messages()

    inbox.deliver("b", headers=json.dumps({"hookonce-via": headers["hookonce-via"]}))
    work(inbox)

    assert results(inbox)["b"] == ("done", {"skipped": "came from there"})
    assert nats_broker.count() == 1


def test_broker_that_is_away_costs_no_attempt(inbox, tmp_path, nats_server):
    nats_server.make_stream()
    configured(inbox, tmp_path, forward(nats_server.url()))
    inbox.deliver("a")
    nats_server.kill()
    for _ in range(3):
        inbox.work()
        inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() - interval '1 s'")
    nats_server.start()

    work(inbox)

    assert inbox.rows("SELECT status, attempts FROM hookonce.runs") == [("done", 1)]
    assert nats_server.count() == 1


def test_broker_that_is_away_for_long_is_a_failure_that_opens_the_breaker(
    inbox, tmp_path, nats_server, monkeypatch
):
    monkeypatch.setattr(forwards, "PATIENCE", timedelta(0))
    nats_server.make_stream()
    configured(inbox, tmp_path, forward(nats_server.url()))
    inbox.deliver(*"abcdef")
    nats_server.kill()
    try:
        for _ in range(40):
            inbox.work()
            inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() - interval '1 s'")
    finally:
        nats_server.start()

    ((handler, failures),) = inbox.rows(
        "SELECT handler, failures FROM hookonce.breakers WHERE opened_at IS NOT NULL"
    )
    assert handler == "forwards.out"
    assert failures >= forwards.BREAKER


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"to": "kafka://host/topic"}, "not an address of a known kind"),
        ({"to": "nats://host:4222"}, "names no subject"),
        ({"to": "amqp://host/"}, "names no queue and no exchange"),
        ({"to": "nats://me:word@host/orders"}, "a password stands in the file"),
        ({"to": "http://host/in", "secret": "env:FORWARD_SECRET"}, "set allow_private"),
        ({"to": "https://host/in"}, "no secret to sign with"),
        ({"to": "https://host/in", "secret": "whsec_x"}, "given by reference"),
        ({"to": "nats://host/orders", "secret": "env:FORWARD_SECRET"}, "which are of endpoints"),
        ({"to": "nats://host/orders", "types": []}, "types"),
        ({"to": "nats://host/orders", "form": "stripe"}, "has no setting 'form'"),
    ],
)
def test_mistake_of_a_forward_is_said(inbox, tmp_path, options, said):
    with pytest.raises(ConfigError, match=said) as error:
        configured(inbox, tmp_path, forward(**options))

    assert "word" not in str(error.value).replace("password", "")


def test_worker_needs_what_a_reference_names_and_others_do_not(inbox, tmp_path):
    with pytest.raises(ConfigError, match=r"\[forwards.out\] to: env:OUT is not set; a worker needs it"):
        configured(inbox, tmp_path, forward("env:OUT"))


def test_expression_that_is_none_stops_a_worker(inbox, tmp_path):
    with pytest.raises(HandlerError, match=r"\[forwards.out\] when: not a JMESPath"):
        configured(inbox, tmp_path, forward("nats://host/orders", when="data.["))


def test_broker_without_its_package_is_said(inbox, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "hookonce.receiver.outbound.brokers.nats", None)

    with pytest.raises(ConfigError, match=r"pip install 'hookonce\[nats\]'"):
        configured(inbox, tmp_path, forward("nats://host/orders"))
