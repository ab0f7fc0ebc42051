"""What is there, and what is not, of items that docs/reference/designs.md calls partly: it is tried."""

import os
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
import redis

from hookonce import SealedStore, idempotent
from hookonce.providers import Delivery
from hookonce.providers.kit.events.fingerprint import fingerprint
from hookonce.providers.kit.registry import load
from hookonce.receiver import logs
from hookonce.receiver.endpoints.policy import Policy
from hookonce.receiver.idempotency.records import Claim, Key, Record, Result, State, Terms, Verdict, verdict
from hookonce.receiver.idempotency.redis_hash import RedisStore
from hookonce.receiver.ledger.stats import run_durations
from hookonce.receiver.ledger.stats.counters import Kind
from hookonce.receiver.monitoring import ledger_metrics
from tests.support.in_process import Receiver
from tests.support.inbox import inbox

__all__ = ["inbox"]
SECRET = "whsec_of_the_tests"
FIELDS = {
    *("fingerprint", "state", "owner", "attempt", "uncertain", "lease_until", "expires_at"),
    *("status", "headers", "body"),
}
TERMS = Terms(timedelta(minutes=1), timedelta(hours=1))


def answered(store, body=b"seven of ann"):
    claim = store.claim(Claim(Key("scope", "key"), b"f", uuid4(), TERMS))
    store.complete(claim, State.COMPLETED, Result(201, {}, body))


def test_content_in_another_order_has_another_hash_unless_a_place_is_left_out():
    one, other = b'{"a": 1, "b": 2}', b'{"b": 2, "a": 1}'

    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one, ["$.attempt"]) == fingerprint(other, ["$.attempt"])


def test_consumer_is_done_once_in_redis_by_a_block_and_not_by_a_decorator(redis_url):
    book = idempotent("book", scope=None, store=RedisStore.at(redis_url), moves_money=False)
    values = []

    for _ in range(2):
        with book.operation("message-1", {"cents": 5}) as operation:
            if not operation.is_done:
                operation.complete({"booked": len(values) + 1})
            values.append(operation.value)

    assert values == [{"booked": 1}] * 2
    with pytest.raises(TypeError, match="without a request of Flask or Django"):
        book(lambda message: message)({"id": "message 2"})


def test_hash_in_redis_has_ten_fields_and_not_when_it_was_made(redis_url):
    answered(RedisStore.at(redis_url))

    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        [key] = client.scan_iter("hookonce:operation:*")
        assert set(client.hgetall(key)) == FIELDS


def test_delivery_and_its_run_have_no_hash_in_redis(database_url, redis_url):
    receiver = Receiver(database_url, redis_url)
    try:
        receiver.add("stripe", load("stripe"), SECRET)
        body = b'{"id": "evt_1", "type": "invoice.paid"}'
        headers = load("stripe").sign(body, SECRET, receiver.now)
        answer = receiver.send("stripe", Delivery("POST", "/", headers, body))
        assert answer.json["status"] == "accepted"
    finally:
        receiver.close()

    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        keys = [key for key in client.scan_iter() if key.startswith("hookonce")]
        assert keys
        assert not [key for key in keys if client.type(key) == "hash"]


@pytest.mark.parametrize("chosen", ["503", "retryable", "take over", "look", "database"])
def test_policy_of_what_is_in_progress_is_one_of_three(chosen):
    assert [Policy.read(each).in_progress for each in ("202", "409", "wait 2s")] == [202, 409, 202]
    with pytest.raises(ValueError, match="expected '202', '409' or 'wait 2s'"):
        Policy.read(chosen)


def test_operation_whose_lease_ran_out_is_taken_over_whether_it_is_safe_or_not():
    record = Record(b"f", State.IN_PROGRESS, uuid4(), 1, False, timedelta(seconds=-1), timedelta(hours=1))  # noqa: FBT003

    assert verdict(record, b"f") is Verdict.TAKE_OVER


def test_claims_are_counted_when_their_run_has_ended_and_not_before(inbox):
    def fail_one(event, _tx):
        if event.event_id == "a":
            raise LookupError

    inbox.on(fail_one, backoff=(timedelta(hours=1), timedelta(hours=1)))
    inbox.deliver("a", "b")
    inbox.work()

    now = datetime.now(UTC)
    run_durations.add(inbox.connection, now - timedelta(hours=1), now + timedelta(hours=1))
    assert sorted(inbox.rows("SELECT status, attempts FROM hookonce.run_states")) == [
        ("done", 1),
        ("waiting", 1),
    ]
    ended = "SELECT what, count FROM hookonce.activity WHERE minutes = 0 AND source = 'fail_one'"
    assert sorted(inbox.rows(ended)) == [("attempts", 1), ("ended.done", 1), ("retries", 0)]


def test_duplicates_by_type_name_a_source_and_no_consumer():
    assert ledger_metrics.TALLIES[Kind.TYPE][2:] == ("source", "type")


def test_ids_are_in_the_clear_in_logs_unless_the_setting_is_made(inbox):
    assert inbox.settings.log_ids == "plain"
    assert logs.shown("evt_of_ann") == "evt_of_ann"


def test_answer_in_redis_is_sealed_only_by_the_store_that_seals(redis_url):
    answered(RedisStore.at(redis_url))
    with redis.Redis.from_url(redis_url) as client:
        [key] = client.scan_iter("hookonce:operation:*")
        assert client.hget(key, "body") == b"seven of ann"
        client.delete(key)

        answered(SealedStore(RedisStore.at(redis_url), [os.urandom(32)]))
        assert b"ann" not in client.hget(key, "body")
