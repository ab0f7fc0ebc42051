import json
import time
from datetime import UTC, datetime, timedelta

import pytest

from hookonce.jobs.configured import forwards
from hookonce.jobs.handlers import HandlerError
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.ledger.stats import run_durations
from hookonce.receiver.ledger.steps import idempotency_key
from hookonce.receiver.outbound.brokers.port import Away, Refused, encoded
from tests.support.forwarding import configured, errors, forward, results, work
from tests.support.waiting import until

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
        ({"to": "nats://me:word@host/orders"}, "a password or a token stands in the file"),
        ({"to": "nats://word@host/orders"}, "a password or a token stands in the file"),
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


class Scripted:
    """A publisher whose broker answers some messages, and the others in a way of their own."""

    def __init__(self, answer=lambda _: None):
        self.calls, self.answer, self.takes = [], answer, 0.0

    def publish(self, messages):
        self.calls.append([each.headers["ce-id"] for each in messages])
        time.sleep(self.takes)
        return [self.answer(each.headers["ce-id"]) for each in messages]


@pytest.fixture
def scripted(inbox, tmp_path, monkeypatch):
    publisher = Scripted()
    monkeypatch.setattr(forwards, "Publisher", lambda _: publisher)
    configured(inbox, tmp_path, forward("nats://host/orders", attempts=2))
    return publisher


def asked(inbox, scripted):
    """Work until the publisher has been called."""
    before = len(scripted.calls)
    until(lambda: [inbox.work()] and len(scripted.calls) > before)


def due(inbox, when="-1 s"):
    inbox.connection.execute("UPDATE hookonce.queue SET due_at = now() + %s::interval", [when])


def test_message_that_is_never_answered_keeps_no_other_of_its_batch(inbox, scripted):
    scripted.answer = lambda name: Away("no answer") if name == "c" else None
    inbox.deliver(*"abcdef")

    asked(inbox, scripted)
    until(lambda: [inbox.work()] and len(results(inbox)) >= 5)

    assert {name for name, (status, _) in results(inbox).items() if status == "done"} == set("abdef")
    assert inbox.rows("SELECT attempts FROM hookonce.runs WHERE status <> 'done'") in ([], [(0,)])
    assert sum("a" in call for call in scripted.calls) == 1


def test_message_that_is_never_answered_is_charged_though_others_go(inbox, scripted, monkeypatch):
    monkeypatch.setattr(forwards, "PATIENCE", timedelta(0))
    scripted.answer = lambda name: Away("no answer") if name == "bad" else None
    inbox.deliver("bad")

    for n in range(3):
        asked(inbox, scripted)
        due(inbox, "1 hour")
        inbox.deliver(f"good{n}")
        asked(inbox, scripted)
        due(inbox)

    assert scripted.calls[::2] == [["bad"]] * 3
    assert results(inbox)["bad"][0] == "dead"


def test_what_a_broker_refuses_is_left_to_the_halving(inbox, scripted):
    scripted.answer = lambda _: Refused("no stream")
    inbox.deliver(*(f"e{n}" for n in range(64)))

    asked(inbox, scripted)

    assert [len(call) for call in scripted.calls[:2]] == [64, 32]


def test_broker_that_was_waited_for_is_not_asked_again_at_once(inbox, scripted):
    scripted.takes, scripted.answer = 1.0, lambda _: Away("no answer")
    inbox.deliver("a")
    asked(inbox, scripted)

    for _ in range(3):
        due(inbox)
        inbox.work()

    assert scripted.calls == [["a"]]
    assert inbox.rows("SELECT attempts FROM hookonce.runs") in ([], [(0,)])
    scripted.answer = lambda _: None
    work(inbox)
    assert scripted.calls == [["a"], ["a"]]


@pytest.mark.parametrize(
    ("to", "secrets"),
    [
        (
            "https://hooks.shop.example/T0/SECRETTOKEN?key=k",
            {"https://hooks.shop.example/T0/SECRETTOKEN?key=k"},
        ),
        ("nats://SECRETTOKEN@host/orders", {"SECRETTOKEN"}),
        ("nats://me:SECRETTOKEN@host/orders", {"SECRETTOKEN"}),
    ],
)
def test_secret_of_an_address_is_known_and_not_shown(inbox, tmp_path, to, secrets):
    options = {"sign": "as sender"} if to.startswith("https") else {}
    inbox = configured(inbox, tmp_path, forward("env:OUT", **options), OUT=to)
    (made,) = inbox.settings.forwards.values()

    assert secrets <= set(inbox.settings.secrets())
    assert "SECRETTOKEN" not in made.address.shown


def test_secret_of_a_consumer_s_address_is_known(inbox, tmp_path):
    text = '[sources.orders]\nprovider = "stripe"\nfrom = "env:IN"\nsecrets = ["env:STRIPE"]'
    inbox = configured(inbox, tmp_path, text, IN="nats://SECRETTOKEN@host/orders")

    assert "SECRETTOKEN" in inbox.settings.secrets()


def test_content_type_is_sent_as_it_is_but_for_what_no_header_holds():
    sent = {"content-type": 'application/json; charset="utf-8"', "ce-subject": 'a "b"%'}

    assert encoded(sent) == {"content-type": sent["content-type"], "ce-subject": "a%20%22b%22%25"}
    assert encoded({"content-type": "a\r\nb: c\u00fc"}) == {"content-type": "a%0D%0Ab: c%C3%BC"}


def test_content_type_arrives_as_it_came(inbox, tmp_path, nats_broker):
    configured(inbox, tmp_path, forward(nats_broker.url()))
    inbox.deliver("a", headers=json.dumps({"content-type": "application/json; charset=utf-8"}))

    work(inbox)

    assert nats_broker.messages()[0][0]["content-type"] == "application/json; charset=utf-8"
