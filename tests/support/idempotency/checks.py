"""What every store must do: each check is a test of each store, and must find the mistake planted for it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from hookonce.receiver.idempotency import operation
from hookonce.receiver.idempotency.operation import Stored
from hookonce.receiver.idempotency.records import (
    Claim,
    InProgress,
    Key,
    KeyReused,
    LeaseLost,
    Result,
    State,
    StoreUnavailable,
    Terms,
    scope_of,
)
from tests.support.waiting import until

TERMS = Terms(lease=timedelta(seconds=30), retention=timedelta(hours=1))
KEY = Key(scope_of("pay", "tenant-1"), "one")
ASKED, OTHER = b"a" * 32, b"b" * 32
ANSWER = Result(201, {"Content-Type": "application/json", "Location": "/payments/7"}, b'{"id": 7, "\xff": 1}')
AFTER_LEASE = TERMS.lease + timedelta(seconds=5)
AFTER_RETENTION = TERMS.retention + timedelta(seconds=5)
THREADS = 20
DEADLINE = 30


class Shop:
    """An effect in the world that can be counted, by the key that it was asked for under."""

    def __init__(self):
        self.effects = []
        self._lock = threading.Lock()

    def pay(self, key):
        with self._lock:
            self.effects.append(key)


def serve(store, shop, key=KEY, fingerprint=ASKED, answer=ANSWER):
    """Serve one request as the library does; returns its answer. Raises what a refusal is."""
    begun = operation.begin(store, key, fingerprint, TERMS)
    if isinstance(begun, Stored):
        return begun.result
    shop.pay(operation.downstream_key(key))
    operation.complete(store, begun, answer)
    return answer


def begin(store, key=KEY, fingerprint=ASKED):
    begun = operation.begin(store, key, fingerprint, TERMS)
    assert isinstance(begun, Claim)
    return begun


# 1
def repeats_the_answer(place):
    store, shop = place.open(), Shop()

    answers = [serve(store, shop), serve(place.open(), shop), serve(store, shop)]

    assert answers == [ANSWER] * 3
    assert len(shop.effects) == 1


# 2
def refuses_another_request_under_the_key(place):
    store, shop = place.open(), Shop()
    serve(store, shop)

    with pytest.raises(KeyReused):
        serve(store, shop, fingerprint=OTHER)

    assert len(shop.effects) == 1


# 3
def lets_one_of_twenty_work_and_answers_all(place):
    shop, barrier = Shop(), threading.Barrier(THREADS)

    def request(store):
        barrier.wait(DEADLINE)
        return until(lambda: serve(store, shop), away=InProgress)

    stores = [place.open() for _ in range(4)]
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(request, [stores[n % 4] for n in range(THREADS)]))

    assert answers == [ANSWER] * THREADS
    assert len(shop.effects) == 1


# 4
def waits_for_a_dead_claim_and_then_takes_it_over(place):
    store, shop = place.open(), Shop()
    first = begin(store)

    with pytest.raises(InProgress) as waiting:
        serve(place.open(), shop)
    assert timedelta(0) < waiting.value.lease_left <= TERMS.lease + timedelta(seconds=3)
    place.age(KEY, AFTER_LEASE)
    second = begin(place.open())

    assert not first.is_uncertain
    assert (second.attempt, second.is_uncertain) == (2, True)
    with pytest.raises(InProgress):
        serve(store, shop)


# 5
def recovers_an_effect_that_nobody_wrote_down(place):
    store, shop = place.open(), Shop()
    begin(store)
    shop.pay(operation.downstream_key(KEY))  # and dies
    place.age(KEY, AFTER_LEASE)

    claim = begin(store)
    if not (claim.is_uncertain and operation.downstream_key(KEY) in shop.effects):
        shop.pay(operation.downstream_key(KEY))
    operation.complete(store, claim, ANSWER)

    assert len(shop.effects) == 1
    assert serve(store, shop) == ANSWER


# 6
def does_nothing_without_its_server(place):
    shop = Shop()

    with pytest.raises(StoreUnavailable):
        serve(place.nowhere(), shop)

    assert shop.effects == []


# 7
def refuses_the_end_of_whoever_is_not_the_owner(place):
    store = place.open()
    claim = begin(store)

    for state, result in ((State.COMPLETED, Result(200, {}, b"forged")), (State.FAILED_RETRYABLE, None)):
        with pytest.raises(LeaseLost):
            store.complete(replace(claim, owner=uuid4()), state, result)
    store.release(replace(claim, owner=uuid4()))
    operation.complete(store, claim, ANSWER)
    with pytest.raises(LeaseLost):
        store.complete(replace(claim, owner=uuid4()), State.COMPLETED, Result(200, {}, b"forged"))

    assert serve(store, Shop()) == ANSWER


# 8
def refuses_the_late_end_of_a_claim_that_was_taken_over(place):
    store = place.open()
    late = begin(store)
    place.age(KEY, AFTER_LEASE)
    claim = begin(place.open())

    with pytest.raises(LeaseLost):
        operation.complete(store, late, Result(200, {}, b"late"))
    store.release(late)
    operation.complete(store, claim, ANSWER)
    with pytest.raises(LeaseLost):
        operation.complete(store, late, Result(200, {}, b"late"))

    assert serve(store, Shop()) == ANSWER


# 8, another way to lose it
def refuses_the_end_of_a_claim_that_is_gone(place):
    store = place.open()
    late = begin(store)
    place.lose(KEY)

    with pytest.raises(LeaseLost):
        operation.complete(store, late, ANSWER)

    assert store.find(KEY) is None


# 9: what a lease is for; whoever is slow is not dead
def takes_the_end_of_an_owner_whose_lease_ran_out_unnoticed(place):
    store = place.open()
    claim = begin(store)
    place.age(KEY, AFTER_LEASE)

    operation.complete(store, claim, ANSWER)

    assert serve(store, Shop()) == ANSWER


# 10
def keeps_scopes_apart(place):
    store, shop = place.open(), Shop()
    mine = Key(scope_of("pay", "tenant-1", "ann"), "one")
    others = [
        Key(scope_of("pay", "tenant-2", "ann"), "one"),
        Key(scope_of("refund", "tenant-1", "ann"), "one"),
        Key(scope_of("pay", "tenant-1", "bob"), "one"),
        Key(scope_of("pay", "tenant-1ann"), "one"),
        Key(scope_of("pay", "tenant-1", "ann" * 300), "one"),
        Key(scope_of("pay", "tenant-1", "ann"), "One"),
    ]

    serve(store, shop, mine)
    answers = [serve(store, shop, key, OTHER, Result(200, {}, b"other")) for key in others]

    assert answers == [Result(200, {}, b"other")] * len(others)
    assert serve(store, shop, mine) == ANSWER
    assert len(set(shop.effects)) == len(shop.effects) == 7


def lets_one_of_twenty_take_over(place):
    barrier = threading.Barrier(THREADS)
    begin(place.open())
    place.age(KEY, AFTER_LEASE)

    def request(store):
        barrier.wait(DEADLINE)
        try:
            return operation.begin(store, KEY, ASKED, TERMS)
        except InProgress:
            return None

    stores = [place.open() for _ in range(4)]
    with ThreadPoolExecutor(THREADS) as pool:
        begun = list(pool.map(request, [stores[n % 4] for n in range(THREADS)]))

    assert [claim.attempt for claim in begun if claim] == [2]


def gives_a_final_failure_again(place):
    store, shop = place.open(), Shop()
    refusal = Result(402, {}, b"card declined")
    operation.complete(store, begin(store), refusal, State.FAILED_FINAL)

    assert serve(store, shop) == refusal
    assert shop.effects == []


def tries_again_after_a_failure_for_now(place):
    store, shop = place.open(), Shop()
    operation.fail_for_now(store, begin(store))

    with pytest.raises(KeyReused):
        serve(store, shop, fingerprint=OTHER)
    claim = begin(store)

    assert (claim.attempt, claim.is_uncertain) == (2, False)


def remembers_doubt_until_the_end(place):
    store = place.open()
    begin(store)
    place.age(KEY, AFTER_LEASE)
    operation.abandon(store, begin(store))

    claim = begin(store)

    assert (claim.attempt, claim.is_uncertain) == (3, True)
    place.age(KEY, AFTER_LEASE)
    with pytest.raises(KeyReused):
        begin(store, fingerprint=OTHER)


def frees_the_key_of_work_that_was_not_done(place):
    store, shop = place.open(), Shop()
    operation.abandon(store, begin(store))

    assert serve(store, shop, fingerprint=OTHER) == ANSWER


def gives_one_owner_one_claim_however_often_it_asks(place):
    store = place.open()
    claim = begin(store)

    assert store.claim(claim) == claim
    operation.complete(store, claim, ANSWER)
    operation.complete(store, claim, ANSWER)
    assert store.find(KEY).result == ANSWER


def survives_replies_that_are_lost(place):
    store, shop = LosesReplies(place.open()), Shop()

    store.doomed = {"claim", "complete"}
    answer = serve(store, shop)

    assert store.doomed == set()
    assert (answer, serve(store, shop)) == (ANSWER, ANSWER)
    assert len(shop.effects) == 1


class LosesReplies:
    """A store whose server does what it is asked, and whose answer is lost once."""

    def __init__(self, store):
        self._store = store
        self.loses, self.max_result = store.loses, store.max_result
        self.doomed = set()

    def __getattr__(self, name):
        def ask(*values):
            answer = getattr(self._store, name)(*values)
            if name in self.doomed:
                self.doomed.discard(name)
                raise StoreUnavailable(f"the reply of {name} was lost")
            return answer

        return ask


def forgets_after_the_retention(place):
    store, shop = place.open(), Shop()
    serve(store, shop)
    place.age(KEY, AFTER_RETENTION)

    assert serve(store, shop, fingerprint=OTHER, answer=Result(200)) == Result(200)
    assert store.find(KEY).attempt == 1
    assert len(shop.effects) == 2


def refuses_the_end_of_a_claim_that_expired_while_it_ran(place):
    store, shop = place.open(), Shop()
    late = begin(store)
    place.age(KEY, AFTER_RETENTION)
    claim = begin(store, fingerprint=OTHER)

    with pytest.raises(LeaseLost):
        operation.complete(store, late, Result(200, {}, b"late"))
    operation.complete(store, claim, ANSWER)

    assert (claim.attempt, claim.is_uncertain) == (1, False)
    assert serve(store, shop, fingerprint=OTHER) == ANSWER


def goes_by_the_clock_of_its_server(place):
    store, shop = place.open(), Shop()
    for n, jump in enumerate((-86_400, 86_400)):
        key = Key(KEY.scope, f"jump-{n}")
        claim = begin(store, key)
        real = time.time
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "time", lambda jump=jump, real=real: real() + jump)
            with pytest.raises(InProgress):
                serve(place.open(), shop, key)
            operation.complete(store, claim, ANSWER)
            assert serve(place.open(), shop, key) == ANSWER
        assert store.find(key).kept_for > TERMS.retention - timedelta(minutes=1)
    assert shop.effects == []


def says_so_when_an_answer_is_too_large_to_keep(place):
    store = place.open()
    large = Result(200, {"Content-Type": "text/plain"}, b"x" * (store.max_result + 1))

    operation.complete(store, begin(store), large)

    assert serve(store, Shop()) == Result(200, {}, b"", is_kept=False)


def takes_the_largest_answer(place):
    store = place.open()
    large = Result(200, {}, b"x" * store.max_result)

    operation.complete(store, begin(store), large)

    assert serve(store, Shop()) == large


CORE = (
    repeats_the_answer,
    refuses_another_request_under_the_key,
    lets_one_of_twenty_work_and_answers_all,
    waits_for_a_dead_claim_and_then_takes_it_over,
    recovers_an_effect_that_nobody_wrote_down,
    does_nothing_without_its_server,
    refuses_the_end_of_whoever_is_not_the_owner,
    refuses_the_late_end_of_a_claim_that_was_taken_over,
    takes_the_end_of_an_owner_whose_lease_ran_out_unnoticed,
    keeps_scopes_apart,
)
"""The ten that every design of idempotency keys asks for."""
FURTHER = (
    lets_one_of_twenty_take_over,
    refuses_the_end_of_a_claim_that_is_gone,
    gives_a_final_failure_again,
    tries_again_after_a_failure_for_now,
    remembers_doubt_until_the_end,
    frees_the_key_of_work_that_was_not_done,
    gives_one_owner_one_claim_however_often_it_asks,
    survives_replies_that_are_lost,
    forgets_after_the_retention,
    refuses_the_end_of_a_claim_that_expired_while_it_ran,
    goes_by_the_clock_of_its_server,
    says_so_when_an_answer_is_too_large_to_keep,
    takes_the_largest_answer,
)
