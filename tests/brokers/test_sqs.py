"""Forwards to SQS and consumers of it, on moto's server."""

import asyncio
import base64
import json
import threading
from datetime import timedelta

import pytest

from hookonce.receiver.cli.doctor import brokers
from hookonce.receiver.config.addresses import Address
from hookonce.receiver.ledger.steps import idempotency_key
from hookonce.receiver.outbound.brokers import broker, port
from hookonce.receiver.outbound.brokers.port import Away, Message, NotConfirmed, Publisher
from hookonce.receiver.outbound.brokers.sqs import Sqs
from tests.support.brokers import sqs_calls
from tests.support.consuming import stripe_event
from tests.support.forwarding import configured, errors, forward, results, work
from tests.support.waiting import until

KEY = idempotency_key("stripe", "a", "forwards.out")
FIFO = {"FifoQueue": "true"}
REPLAY = """
INSERT INTO hookonce.queue (event, received_at, source, type, handler, cycle, due_at)
SELECT id, received_at, source, type, 'forwards.out', 2, now() FROM hookonce.events
"""


def queue(sqs, name, **attributes):
    return sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]


def received(sqs, url):
    """Take all messages, and return them by their event's id."""
    found = {}
    while messages := sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
    ).get("Messages"):
        for each in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
            found[each["MessageAttributes"]["ce-id"]["StringValue"]] = each
    return found


def test_batch_takes_a_call_for_ten_events(inbox, tmp_path, sqs, sqs_endpoint):
    url = queue(sqs, "tens")
    configured(inbox, tmp_path, forward(f"sqs:{url}"))
    inbox.deliver(*(f"e{n}" for n in range(300)))
    before = len(sqs_calls(sqs_endpoint))

    work(inbox)

    assert len(sqs_calls(sqs_endpoint)) - before <= 0.12 * 300
    assert sqs_left(sqs, url) == 300


def test_fifo_message_has_the_run_s_id_and_the_group_of_its_subject(inbox, tmp_path, sqs):
    url = queue(sqs, "orders.fifo", **FIFO)
    configured(inbox, tmp_path, forward(f"sqs:{url}"))
    body = {"id": "a", "type": "customer.updated", "created": 1767225600}
    body["data"] = {"object": {"id": "cus_1", "object": "customer"}}
    inbox.deliver("a", body=json.dumps(body).encode(), type="customer.updated")
    inbox.deliver("b", account="acct 1")
    inbox.deliver("c")

    work(inbox)

    found = received(sqs, url)
    assert found["a"]["Attributes"]["MessageDeduplicationId"] == f"{KEY}-1"
    assert found["a"]["Attributes"]["MessageGroupId"] == "customer:cus_1"
    assert len(found["b"]["Attributes"]["MessageGroupId"]) == 64
    assert found["c"]["Attributes"]["MessageGroupId"] == "stripe"


def test_body_that_is_no_text_goes_as_base64_and_comes_back_as_it_was(inbox, tmp_path, sqs):
    url = queue(sqs, "bytes")
    configured(inbox, tmp_path, forward(f"sqs:{url}"))
    bodies = {"a": b"\xff\xfe\x00", "b": b"bell \x07", "c": "\u00fc".encode(), "d": b""}
    for name, body in bodies.items():
        inbox.deliver(name, body=body)

    work(inbox)

    taken = asyncio.run(broker(Address.parse(f"sqs:{url}")).fetch(10))
    assert {each.headers["ce-id"]: each.body for each in taken} == bodies
    sqs.purge_queue(QueueUrl=url)
    inbox.connection.execute(REPLAY)
    work(inbox)
    found = received(sqs, url)
    encodings = {name: "hookonce-encoding" in each["MessageAttributes"] for name, each in found.items()}
    assert encodings == {"a": True, "b": True, "c": False, "d": True}
    assert base64.b64decode(found["a"]["Body"]) == bodies["a"]
    assert found["c"]["Body"] == "\u00fc"


def test_two_megabytes_are_dead_with_the_size_and_nothing_of_them_arrives(inbox, tmp_path, sqs):
    url = queue(sqs, "small")
    configured(inbox, tmp_path, forward(f"sqs:{url}"))
    inbox.deliver("large", body=b'"' + b"x" * (2 << 20) + b'"')
    inbox.deliver("a", "b")

    work(inbox)

    assert results(inbox)["large"][0] == "dead"
    assert "2,097,3" in errors(inbox)["large"]
    assert set(received(sqs, url)) == {"a", "b"}


def test_many_large_messages_are_spread_over_calls(inbox, tmp_path, sqs):
    url = queue(sqs, "larger")
    configured(inbox, tmp_path, forward(f"sqs:{url}"))
    for n in range(10):
        inbox.deliver(f"e{n}", body=b'"' + b"x" * 200_000 + b'"')

    work(inbox)

    assert {status for status, _ in results(inbox).values()} == {"done"}


class Stuck(Sqs):
    """It answers two calls, and the third after a signal."""

    calls, signal = 0, threading.Event()

    def _called(self, name, given):
        self.calls += 1
        if self.calls > 2:
            self.signal.wait(60)
        return super()._called(name, given)


def test_messages_that_were_confirmed_count_where_a_later_call_takes_too_long(sqs, monkeypatch):
    monkeypatch.setattr(port, "CALL_TIMEOUT", 3.0)
    publisher = Publisher(Stuck(Address.parse(f"sqs:{queue(sqs, 'stuck')}")))

    outcomes = publisher.publish([Message(f"m{n}", "t", "g", {}, b"{}") for n in range(12)])
    Stuck.signal.set()
    publisher.close()

    assert [type(each) for each in outcomes] == [type(None)] * 10 + [Away] * 2


@pytest.mark.usefixtures("sqs")
def test_queue_that_is_not_there_is_a_failure_and_doctor_says_so(inbox, tmp_path, sqs_endpoint):
    configured(inbox, tmp_path, forward(f"sqs:{sqs_endpoint}/123456789012/nowhere", attempts=1))
    inbox.deliver("a")

    work(inbox)

    assert results(inbox)["a"][0] == "dead"
    assert "NonExistentQueue" in errors(inbox)["a"]
    ((level, text),) = [(each.level, each.text) for each in brokers.forwards(inbox.settings)]
    assert (level, "NonExistentQueue" in text) == ("fail", True)


def test_sqs_messages_are_events_and_deleted(consuming, sqs):
    url = sqs.create_queue(QueueName="orders", Attributes={"VisibilityTimeout": "5"})["QueueUrl"]
    for n in range(25):
        sqs.send_message(QueueUrl=url, MessageBody=stripe_event(n).decode())

    with consuming(f"sqs:{url}") as consumer:
        until(lambda: len(consumer.events()), 25)
        until(lambda: sqs_left(sqs, url), 0, falling=True)


@pytest.mark.parametrize("settle", ["acknowledge", "give_back"])
def test_message_of_a_batch_that_sqs_does_not_settle_is_a_failure(sqs, settle):
    url = queue(sqs, f"unsettled-{settle.replace('_', '-')}")
    for n in range(12):
        sqs.send_message(QueueUrl=url, MessageBody=stripe_event(n).decode())
    place = broker(Address.parse(f"sqs:{url}"))

    async def settled():
        taken = list(await place.fetch(12))
        taken[-1] = taken[-1]._replace(handle="a receipt of nothing")
        await getattr(place, settle)(taken, *[timedelta(0)] * (settle == "give_back"))

    with pytest.raises(NotConfirmed, match="refuses a message: ReceiptHandleIsInvalid"):
        asyncio.run(settled())


def sqs_left(sqs, url):
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    return sum(map(int, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"].values()))
