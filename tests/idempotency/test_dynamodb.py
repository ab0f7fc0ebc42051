"""What only DynamoDB does: it deletes late, and tells the time by the second."""

import time
from datetime import timedelta

import pytest

from hookonce.receiver.idempotency.records import InProgress, StoreUnavailable
from tests.support.idempotency.checks import (
    AFTER_LEASE,
    AFTER_RETENTION,
    ANSWER,
    KEY,
    TERMS,
    Shop,
    begin,
    serve,
)
from tests.support.idempotency.places import OnDynamo


@pytest.fixture
def place(dynamo_endpoint):
    made = OnDynamo(dynamo_endpoint)
    yield made
    made.close()


def test_item_goes_by_itself_some_time_after_it_expired(place):
    store = place.open()
    serve(store, Shop())

    found = place.item(KEY)

    assert int(found["ttl"]["N"]) > float(found["expires_at"]["N"]) > time.time()


def test_item_that_has_expired_and_is_still_there_counts_as_gone(place):
    store = place.open()
    serve(store, Shop())
    place.age(KEY, AFTER_RETENTION)

    assert begin(store, fingerprint=b"other").attempt == 1


def test_item_holds_neither_key_nor_scope(place):
    store = place.open()
    serve(store, Shop())

    assert "tenant-1" not in str(place.item(KEY))


def test_takeover_whose_reply_was_lost_is_ours_when_boto_asks_again(place, monkeypatch):
    begin(place.open())
    place.age(KEY, AFTER_LEASE)
    store = place.open()
    put = store.client.put_item
    monkeypatch.setattr(store.client, "put_item", lambda **asked: (put(**asked), put(**asked))[1])

    claim = begin(store)

    assert (claim.attempt, claim.is_uncertain) == (2, True)


@pytest.mark.parametrize("jump", [-86_400, 86_400])
def test_clock_of_this_machine_says_nothing(place, jump, monkeypatch):
    begin(place.open())
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + jump)

    with pytest.raises(InProgress) as waiting:
        serve(place.open(), Shop())

    assert abs(waiting.value.lease_left - TERMS.lease) < timedelta(seconds=5)


def test_lease_is_never_shorter_than_agreed_though_the_clock_is_coarse(place):
    store = place.open()
    for _ in range(5):
        asked = time.time()
        claim = begin(store)
        assert float(place.item(KEY)["lease_until"]["N"]) >= asked + TERMS.lease.total_seconds()
        store.release(claim)


def test_table_that_is_not_there_is_unavailable_and_named(place):
    with pytest.raises(StoreUnavailable, match="no-such-table: ResourceNotFoundException"):
        begin(place.without_table())


def test_answer_is_kept_as_it_was(place):
    store = place.open()

    assert [serve(store, Shop()), serve(place.open(), Shop())] == [ANSWER, ANSWER]
