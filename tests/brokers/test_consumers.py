"""Consumers on real brokers: what is in the ledger, and what is left at the broker."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from nats.js.errors import NotFoundError

from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import load_settings
from hookonce.receiver.encryption import KeyMissing
from hookonce.receiver.intake import consumers
from hookonce.receiver.intake.pipeline import Intake
from tests.support.consuming import signed, stripe_event
from tests.support.waiting import until

HMAC = """
[sources.orders.hmac]
header = "x-signature"
id = "fingerprint"
type = "$.type"
"""


def publish(server, *bodies, headers=None):
    async def send(js):
        for body in bodies:
            await js.publish("events.paid", body, headers=headers)

    server.ask(send)


def left(server, name="hookonce-orders"):
    """Return how many messages a consumer of NATS has not acknowledged."""

    async def count(js):
        try:
            info = await js.consumer_info("EVENTS", name)
        except NotFoundError:
            return 1 << 30
        return info.num_pending + info.num_ack_pending

    return server.ask(count)


def test_messages_become_events_once_and_are_acknowledged(consuming, nats_broker):
    publish(nats_broker, *map(stripe_event, range(250)))
    publish(nats_broker, *map(stripe_event, range(10)))

    with consuming(nats_broker.url()) as consumer:
        until(lambda: len(consumer.events()), 250)
        until(lambda: left(nats_broker), 0, falling=True)

        assert {each[0] for each in consumer.events()} == {f"evt_{n}" for n in range(250)}


def test_messages_are_acknowledged_after_their_commit_and_not_before(consuming, nats_broker, monkeypatch):
    publish(nats_broker, *map(stripe_event, range(5)))
    seen = []

    with consuming(nats_broker.url()) as consumer, ThreadPoolExecutor() as threads:

        def look(place):
            seen.append((place, len(consumer.events()), threads.submit(left, nats_broker).result()))

        monkeypatch.setattr(consumers, "reach", look)
        until(lambda: left(nats_broker), 0, falling=True)

    assert seen[0] == ("messages.committed", 5, 5)


def test_id_is_the_broker_s_where_the_sender_gives_none(consuming, nats_broker):
    publish(nats_broker, b'{"type": "paid"}', b'{"type": "paid"}')

    with consuming(nats_broker.url(), extra=f'repeats = "run"\n{HMAC}', provider="hmac") as consumer:
        until(consumer.events, [("EVENTS:1", "paid", "received"), ("EVENTS:2", "paid", "received")])


def test_signature_of_the_sender_is_checked_where_the_source_does_not_trust_the_queue(
    consuming, nats_broker, monkeypatch
):
    monkeypatch.setattr(consumers, "PAUSE", consumers.timedelta(0))
    body = stripe_event(1)
    publish(nats_broker, stripe_event(2))
    publish(nats_broker, body, headers=signed(body))

    with consuming(nats_broker.url(), authenticity="sender", extra='secrets = ["env:SECRET"]') as consumer:
        until(lambda: left(nats_broker), 0, falling=True)

        assert [each[0] for each in consumer.events()] == ["evt_1"]
        refused = consumer.connection.execute("SELECT DISTINCT reason FROM hookonce.rejected").fetchall()
        assert refused == [("missing_header",)]


@pytest.mark.parametrize("trouble", ["too large", "delivered too often", "fails"])
def test_dead_letter_is_made_of_messages_that_their_sender_signed_alone(
    consuming, nats_broker, monkeypatch, trouble
):
    monkeypatch.setattr(consumers, "PAUSE", consumers.timedelta(0))
    if trouble == "fails":

        async def fails(*_):
            raise LookupError("a bug")

        monkeypatch.setattr(Intake, "take_in", fails)
    if trouble == "delivered too often":
        monkeypatch.setattr(consumers, "DELIVERIES", 0)
    extra = 'secrets = ["env:SECRET"]' + ("\nmax_body = 1024" if trouble == "too large" else "")
    body, forged = (stripe_event(number) + b" " * 1024 for number in (1, 2))
    publish(nats_broker, forged)
    publish(nats_broker, body, headers=signed(body))

    with consuming(nats_broker.url(), authenticity="sender", extra=extra) as consumer:
        until(lambda: left(nats_broker), 0, falling=True)

        kept = consumer.connection.execute("SELECT body FROM hookonce.bodies").fetchall()
        assert kept == [(body,)]
        refused = consumer.connection.execute("SELECT DISTINCT reason FROM hookonce.rejected").fetchall()
        assert refused == [("missing_header",)]


def test_consumer_that_was_deleted_at_its_server_is_noticed_and_made_anew(consuming, nats_broker, caplog):
    async def delete(js):
        await js.delete_consumer("EVENTS", "hookonce-orders")

    publish(nats_broker, stripe_event(1))
    with consuming(nats_broker.url()) as consumer:
        until(lambda: left(nats_broker), 0, falling=True)
        nats_broker.ask(delete)
        publish(nats_broker, stripe_event(2))
        until(lambda: len(consumer.events()), 2)
        until(lambda: left(nats_broker), 0, falling=True)

    assert "has no consumer hookonce-orders any more" in caplog.text


@pytest.mark.parametrize(
    "body", [b"", b"no JSON", b"\xff\xfe", b"[" * 100_000], ids=["empty", "text", "bytes", "deep"]
)
def test_message_that_cannot_be_read_is_a_dead_letter_and_acknowledged(consuming, nats_broker, body):
    publish(nats_broker, body, stripe_event(1))

    with consuming(nats_broker.url()) as consumer:
        until(lambda: left(nats_broker), 0, falling=True)
        until(lambda: len(consumer.events()), 2)

        assert sorted(each[1:] for each in consumer.events()) == [
            ("invoice.paid", "received"),
            ("unreadable", "dead"),
        ]


def test_message_that_is_too_large_is_a_dead_letter_with_its_size(consuming, nats_broker):
    publish(nats_broker, b"x" * 2000)

    with consuming(nats_broker.url(), extra="max_body = 1024") as consumer:
        until(lambda: left(nats_broker), 0, falling=True)

        ((why,),) = consumer.connection.execute("SELECT error FROM hookonce.failures").fetchall()
        assert "2,000 bytes are more than max_body, 1,024" in why


def test_message_that_fails_again_and_again_is_a_dead_letter(consuming, nats_broker, monkeypatch):
    monkeypatch.setattr(consumers, "PAUSE", consumers.timedelta(0))
    publish(nats_broker, stripe_event(1))

    async def fails(*_):
        raise LookupError("a bug")

    monkeypatch.setattr(Intake, "take_in", fails)
    with consuming(nats_broker.url()) as consumer:
        until(lambda: left(nats_broker), 0, falling=True)

        assert [each[1:] for each in consumer.events()] == [("unreadable", "dead")]
        assert "it failed 5 times: LookupError" in consumer.errors()[0]


def test_dead_letter_that_cannot_be_stored_comes_again_and_is_logged_as_that(
    consuming, nats_broker, monkeypatch, caplog
):
    monkeypatch.setattr(consumers, "PAUSE", consumers.timedelta(0))
    real, failures = Intake.take_unreadable, [KeyMissing("k1")]

    def stored(*given):
        if failures:
            raise failures.pop()
        return real(*given)

    monkeypatch.setattr(Intake, "take_unreadable", stored)
    publish(nats_broker, b"x" * 2000)
    with consuming(nats_broker.url(), extra="max_body = 1024") as consumer:
        until(lambda: left(nats_broker), 0, falling=True)

        assert [each[1:] for each in consumer.events()] == [("unreadable", "dead")]
    said = [each.getMessage() for each in caplog.records if each.name == consumers.__name__]
    assert said == ["a message was given back: KeyMissing", "a message became a dead letter: too_large"]


def test_source_that_is_consumed_has_no_url(consuming, nats_broker):
    from hookonce.receiver.app import create_app  # noqa: PLC0415

    consumer = consuming(nats_broker.url(), authenticity="sender", extra='secrets = ["env:SECRET"]')
    app = create_app(consumer.settings)
    body = stripe_event(1)

    answer = app.test_client().post("/hooks/orders", data=body, headers=signed(body))

    assert answer.status_code == 404
    assert consumer.events() == []
    app.extensions["hookonce"].close()
    consumer.connection.close()


def test_source_has_no_url_where_its_broker_is_not_known_either(consuming, nats_broker):
    consumer = consuming(nats_broker.url())
    settings = load_settings(consumer.environ, need_secrets=False)
    consumer.connection.close()

    assert settings.sources["orders"].broker == ""


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('from = "https://host/in"', "expected a subject or a queue"),
        ('from = "amqp://host/?exchange=events"', "expected a subject or a queue"),
        ('from = "kafka://host/topic"', "not an address of a known kind"),
        ('from = "nats://me:word@host/orders"', "a password or a token stands in the file"),
        ('authenticity = "queue"', 'authenticity = "queue" and no from'),
    ],
)
def test_mistake_of_a_consumer_is_said(tmp_path, table, said):
    file = tmp_path / "hookonce.toml"
    file.write_text(f'[sources.stripe]\nsecrets = ["env:S"]\n{table}')

    with pytest.raises(ConfigError, match=said):
        load_settings({"HOOKONCE_CONFIG": str(file), "S": "whsec_test"})
