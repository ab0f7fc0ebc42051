"""Forwards to RabbitMQ and consumers of it, on a server of Debian's."""

import asyncio
import json
from contextlib import suppress

import aio_pika
import pytest

from hookonce.receiver.cli.doctor import brokers
from hookonce.receiver.config.addresses import Address
from hookonce.receiver.ledger.steps import idempotency_key
from hookonce.receiver.outbound.brokers import broker, rabbitmq
from hookonce.receiver.outbound.brokers.port import Message, Publisher, Refused, Taken
from tests.support.consuming import stripe_event
from tests.support.forwarding import configured, errors, forward, results, work
from tests.support.waiting import until

KEY = idempotency_key("stripe", "a", "forwards.out")


async def declared(channel, name):
    queue = await channel.declare_queue(name, durable=True)
    await queue.purge()
    return queue


async def all_of(server, name):
    """Take all messages of a queue."""
    async with await aio_pika.connect(server.url().partition("?")[0]) as connection:
        queue = await (await connection.channel()).declare_queue(name, passive=True)
        return [await queue.get(no_ack=True) for _ in range(queue.declaration_result.message_count)]


async def bind(server, name, exchange="", key=""):
    async with await aio_pika.connect(server.url().partition("?")[0]) as connection:
        channel = await connection.channel()
        queue = await declared(channel, name)
        if exchange:
            await channel.declare_exchange(exchange, "topic", durable=True)
            await queue.bind(exchange, key)


def test_message_has_the_run_s_id_and_its_headers(inbox, tmp_path, rabbit_server):
    asyncio.run(bind(rabbit_server, "out"))
    configured(inbox, tmp_path, forward("env:OUT"), OUT=rabbit_server.url("queue=out"))
    inbox.deliver("a", body=b'{"a": 1}', type="invoice.paid")

    work(inbox)

    (message,) = asyncio.run(all_of(rabbit_server, "out"))
    assert message.body == b'{"a": 1}'
    assert message.message_id == message.headers["x-deduplication-header"] == f"{KEY}-1"
    assert message.headers["cloudEvents_id"] == "a"
    assert message.headers["cloudEvents_specversion"] == "1.0"
    assert message.type == "invoice.paid"
    assert message.delivery_mode == aio_pika.DeliveryMode.PERSISTENT


def test_exchange_gets_the_type_as_the_routing_key(inbox, tmp_path, rabbit_server):
    asyncio.run(bind(rabbit_server, "paid", "events", "invoice.*"))
    configured(inbox, tmp_path, forward("env:OUT", attempts=1), OUT=rabbit_server.url("exchange=events"))
    inbox.deliver("a", type="invoice.paid")
    inbox.deliver("b", type="charge.failed")

    work(inbox)

    assert [each.headers["cloudEvents_id"] for each in asyncio.run(all_of(rabbit_server, "paid"))] == ["a"]
    assert results(inbox)["b"][0] == "dead"
    assert "no queue takes a message" in errors(inbox)["b"]


@pytest.mark.parametrize("place", ["queue=nowhere", "exchange=nowhere"])
def test_place_that_is_not_there_is_a_failure_and_doctor_says_so(inbox, tmp_path, rabbit_server, place):
    configured(inbox, tmp_path, forward("env:OUT", attempts=1), OUT=rabbit_server.url(place))
    inbox.deliver("a")

    work(inbox)

    assert results(inbox)["a"][0] == "dead"
    assert [each.level for each in brokers.forwards(inbox.settings)] == ["fail"]


def test_broker_that_was_killed_is_used_again(inbox, tmp_path, rabbit_server):
    asyncio.run(bind(rabbit_server, "out"))
    configured(inbox, tmp_path, forward("env:OUT"), OUT=rabbit_server.url("queue=out"))
    inbox.deliver("a")
    work(inbox)
    rabbit_server.kill()
    inbox.deliver("b")
    inbox.work()
    rabbit_server.start()

    work(inbox)

    found = [each.headers["cloudEvents_id"] for each in asyncio.run(all_of(rabbit_server, "out"))]
    assert set(found) == {"a", "b"}


def test_rabbitmq_messages_are_events_and_acknowledged(consuming, rabbit_server):
    asyncio.run(fill(rabbit_server, [(f"m{n}", stripe_event(n)) for n in range(250)]))

    with consuming(rabbit_server.url()) as consumer:
        until(lambda: len(consumer.events()), 250)
    assert asyncio.run(rabbit_count(rabbit_server)) == 0


@pytest.mark.parametrize("is_noticed", [False, True], ids=["at once", "later"])
def test_queue_that_was_deleted_is_noticed_and_consumed_once_it_is_made_again(
    consuming, rabbit_server, caplog, is_noticed
):
    asyncio.run(fill(rabbit_server, [("m1", stripe_event(1))]))

    with consuming(rabbit_server.url()) as consumer:
        until(lambda: len(consumer.events()), 1)
        asyncio.run(delete(rabbit_server))
        if is_noticed:
            until(lambda: "orders can't be used" in caplog.text)
        asyncio.run(fill(rabbit_server, [("m2", stripe_event(2))]))
        until(lambda: len(consumer.events()), 2)


def test_queue_that_is_made_again_is_consumed_by_all_who_consumed_it(rabbit_server, monkeypatch):
    monkeypatch.setattr(rabbitmq, "_FIRST", 0.02)
    places = [broker(Address.parse(rabbit_server.url())) for _ in range(2)]

    async def consumers():
        """Return how many consumers the queue has after each of the two has looked some times."""
        for place in places:
            for _ in range(3):
                with suppress(Refused):
                    await place.fetch(1)
        async with await aio_pika.connect(rabbit_server.url().partition("?")[0]) as connection:
            queue = await (await connection.channel()).declare_queue("orders", passive=True)
            return queue.declaration_result.consumer_count

    async def counts():
        found = []
        for _ in range(2):
            await delete(rabbit_server)
            await fill(rabbit_server, [])
            found.append(await consumers())
        for place in places:
            await place.close()
        return found

    assert asyncio.run(counts()) == [2, 2]


async def delete(server):
    async with await aio_pika.connect(server.url().partition("?")[0]) as connection:
        await (await connection.channel()).queue_delete("orders")


def test_messages_of_a_fetch_that_failed_come_again(consuming, rabbit_server, monkeypatch):
    failures = [LookupError()]

    def taken(*given):
        if failures:
            raise failures.pop()
        return Taken(*given)

    monkeypatch.setattr(rabbitmq, "Taken", taken)
    asyncio.run(fill(rabbit_server, [(f"m{n}", stripe_event(n)) for n in range(3)]))

    with consuming(rabbit_server.url()) as consumer:
        until(lambda: len(consumer.events()), 3)


async def fill(server, messages):
    async with await aio_pika.connect(server.url().partition("?")[0]) as connection:
        channel = await connection.channel()
        await channel.declare_queue("orders", durable=True)
        for name, body in messages:
            await channel.default_exchange.publish(aio_pika.Message(body, message_id=name), "orders")


async def rabbit_count(server):
    async with await aio_pika.connect(server.url().partition("?")[0]) as connection:
        queue = await (await connection.channel()).declare_queue("orders", passive=True)
        return queue.declaration_result.message_count


LONG = "application/json; x=" + "y" * 300


def test_content_type_that_is_longer_than_amqp_has_is_cut(inbox, tmp_path, rabbit_server):
    asyncio.run(bind(rabbit_server, "out"))
    configured(inbox, tmp_path, forward("env:OUT"), OUT=rabbit_server.url("queue=out"))
    inbox.deliver("a", headers=json.dumps({"content-type": LONG}))

    work(inbox)

    (message,) = asyncio.run(all_of(rabbit_server, "out"))
    assert message.content_type == LONG[:255]


def test_routing_key_that_is_longer_than_amqp_has_is_dead_and_others_go(inbox, tmp_path, rabbit_server):
    asyncio.run(bind(rabbit_server, "long", "long", "#"))
    configured(inbox, tmp_path, forward("env:OUT"), OUT=rabbit_server.url("exchange=long"))
    inbox.deliver("long", type="x" * 300)
    inbox.deliver("a", type="paid")

    work(inbox)

    assert results(inbox)["long"][0] == "dead"
    assert "routing key of 300 bytes" in errors(inbox)["long"]
    assert results(inbox)["a"][0] == "done"


def test_message_that_amqp_can_not_hold_is_refused(rabbit_server):
    asyncio.run(bind(rabbit_server, "out"))
    sender = Publisher(broker(Address.parse(rabbit_server.url("queue=out"))))
    made = [Message(name, "paid", "", {"content-type": name}, b"") for name in ("text/plain", "\ud800")]
    try:
        sent, refused = sender.publish(made)
    finally:
        sender.close()

    assert sent is None
    assert isinstance(refused, Refused)
