"""Redis is the attacker: it never has an event vanish or be stored twice, nor a delivery answered with an error."""

import contextlib
import hashlib
import json
import logging
import time
import timeit
import uuid
from datetime import timedelta
from functools import partial

import pytest
import redis

from hookonce.receiver.cli.doctor import servers
from hookonce.receiver.idempotency.records import Claim, Key, StoreUnavailable, Terms
from hookonce.receiver.idempotency.redis_hash import RedisStore
from hookonce.receiver.intake import deduplication
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.processes.waits import run
from hookonce.receiver.redis.answers import MAX_COUNT
from hookonce.receiver.redis.circuit_breaker import CircuitBreaker
from hookonce.receiver.redis.client import RedisUnavailable, connect
from hookonce.receiver.redis.dedup_window import DedupWindow, Remembered, WindowEntry, WindowPlace
from hookonce.receiver.redis.sign_in_attempts import take
from hookonce.receiver.redis.work_queue import WorkQueue
from hookonce.receiver.redis.workers import alive
from tests.support.hostile_redis import HostileRedis, honest
from tests.support.waiting import until

PROMPT = 9
"""Seconds that a delivery may take: senders give ten or more; on an idle machine the worst of these take one."""
DAY = timedelta(days=1)
LIMITED = 'rate = "100000/h"\nquota = "200000/h"'
REFUSING = LIMITED + '\nover_limit = "refuse"'
COUNT = "SELECT count(*) FROM hookonce.event_states"


def event(name):
    return {"id": name, "type": "t"}


def body_of(name):
    return json.dumps(event(name)).encode()


@pytest.fixture
def valkey(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        yield client


def key_and_mark(valkey):
    """The key of the event `known`, and what the window says of it once it has heard that the ledger has it."""
    [key] = [key for key in valkey.keys("hookonce:*") if key.endswith(b":known}")]
    return key, until(lambda: (mark := valkey.get(key)).startswith(b"stored:") and mark)  # after the answer


def key_of(known, name):
    """The key of an event that the window does not know, from that of one it knows."""
    return known.replace(b":known}", b":%b}" % name.encode())


def wrong_about(shop, name):
    """Deliver an event that nobody ever sent, and then again; what was answered wrongly."""
    wrong = []
    for expected in ("accepted", "duplicate"):
        began = time.monotonic()
        answer = shop.send(event(name))
        took = time.monotonic() - began
        if answer.status_code != 200 or answer.json["status"] != expected:
            wrong.append((name, expected, answer.status_code, answer.get_data(as_text=True)))
        if took > PROMPT:
            wrong.append((name, expected, f"{took:.2f} s"))
    stored = shop.rows(COUNT + " WHERE event_id = %s", name)
    return wrong if stored == [(1,)] else [*wrong, (name, "stored", stored)]


# What stands in the window for an event that never came.


def unmarked_word(valkey, key, known):  # noqa: ARG001
    name = key.rpartition(b":")[2][:-1].decode()
    valkey.set(key, b"accepted:" + hashlib.sha256(body_of(name)).hexdigest().encode())


def forged(make):
    def write(valkey, key, known):
        valkey.set(key, make(known))

    return write


def changed(*change):
    def write(valkey, key, known):
        valkey.delete(key)
        getattr(valkey, change[0])(key, *change[1:])
        assert known

    return write


WRITES = {
    "a word without a mark": unmarked_word,
    "the mark of another event": forged(lambda known: known),
    "that mark, for longer": forged(lambda known: known.replace(b":1", b":f", 1)),
    "that mark, a digit more": forged(lambda known: known + b"0"),
    "that mark, cut": forged(lambda known: known[:-2]),
    "no mark": forged(lambda known: known.rpartition(b":")[0] + b":"),
    "no time": forged(lambda known: b"stored::" + known.rpartition(b":")[2]),
    "no more than a word": forged(lambda _: b"stored"),
    "a word with a mark of letters": forged(lambda _: b"stored:zz:zz"),
    "bytes that are no text": forged(lambda _: b"stored:\xff\xfe:\x80\x00"),
    "a claim": forged(lambda _: b"claimed"),
    "that mark, a line more": forged(lambda _: b"stored:1\nstored:2"),
    "nothing": forged(lambda _: b""),
    "true": forged(lambda _: b"1"),
    "ten megabytes": forged(lambda _: b"stored:" + b"f" * 10**7),
    "a list": changed("rpush", "stored"),
    "a hash": changed("hset", "stored", "1"),
    "a set": changed("sadd", "stored"),
    "a sorted set": changed("zadd", {"stored": float("inf")}),
    "a stream": changed("xadd", {"stored": "1"}),
}


def test_no_entry_in_the_window_makes_an_event_vanish(open_sources, valkey, caplog):
    shop, wrong = open_sources(), []
    shop.send(event("known"))
    key, known = key_and_mark(valkey)

    for number, (name, write) in enumerate(WRITES.items()):
        new = f"evt_{number}"
        write(valkey, key_of(key, new), known)
        wrong += [(name, *each) for each in wrong_about(shop, new)]

    assert wrong == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_unmarked_word_is_what_such_a_receiver_wrote(open_sources):
    shop = open_sources()
    shop.send(event("known"))

    assert shop.rows("SELECT fingerprint FROM hookonce.event_states") == [
        (hashlib.sha256(body_of("known")).digest(),)
    ]


PLACE = WindowPlace("place", b"k" * 31)
ENTRY = WindowEntry("stripe", "evt_1", b"f" * 32)
OTHERS = {
    "another place": (WindowPlace("place2", PLACE.key), ENTRY),
    "another key": (WindowPlace("place", b"l" * 31), ENTRY),
    "another source": (PLACE, ENTRY._replace(source="other")),
    "another id": (PLACE, ENTRY._replace(event_id="evt_2")),
    "another body": (PLACE, ENTRY._replace(fingerprint=b"g" * 32)),
    "a letter of the source in the id": (PLACE, WindowEntry("strip", "eevt_1", b"f" * 32)),
    "a letter of the id in the source": (PLACE, WindowEntry("stripee", "vt_1", b"f" * 32)),
    "a letter of the place in the source": (WindowPlace("plac", PLACE.key), ENTRY._replace(source="estripe")),
    "an id that is written as the name of its key": (PLACE, ENTRY._replace(event_id="{stripe:evt_1}")),
}


def test_mark_is_good_for_one_event_with_one_body_in_one_place():
    believed = [
        name for name, (place, entry) in OTHERS.items() if place.mark(entry, b"1") == PLACE.mark(ENTRY, b"1")
    ]

    assert believed == []
    assert PLACE.mark(ENTRY, b"1") != PLACE.mark(ENTRY, b"2")
    assert PLACE.mark(ENTRY, b"1") == WindowPlace("place", b"k" * 31).mark(ENTRY, b"1")


def test_mark_costs_a_delivery_less_than_five_microseconds():
    place, is_marked = PLACE, DedupWindow(redis.Redis(), CircuitBreaker())._is_marked  # noqa: SLF001
    until = b"%x" % int((time.time() + 3600) * 1000)
    answer = b"stored:" + until + b":" + place.mark(ENTRY, until)

    made = min(timeit.repeat(lambda: place.mark(ENTRY, until), time.process_time, repeat=5, number=5000))
    checked = min(
        timeit.repeat(lambda: is_marked(place, ENTRY, answer), time.process_time, repeat=5, number=5000)
    )

    assert is_marked(place, ENTRY, answer)
    assert max(made, checked) / 5000 < 5e-6


def test_mark_that_is_moved_to_another_key_is_not_believed(redis_url, valkey):
    with connect(redis_url) as client:
        window = DedupWindow(client, CircuitBreaker())
        run(window.settle(Remembered("queue", PLACE, {ENTRY: timedelta(hours=1)})))
        [key] = valkey.keys("hookonce:*")
        mark, believed = valkey.get(key), []
        for name, (place, entry) in OTHERS.items():
            run(window.claim(place, [entry]))
            for each in valkey.keys("hookonce:*"):
                valkey.set(each, mark)
            believed += [name for answer in run(window.claim(place, [entry])) if answer]

        assert believed == []
        assert run(window.claim(PLACE, [ENTRY])) == [True]


def test_mark_is_believed_for_its_window_and_no_longer_whoever_keeps_it(redis_url, valkey):
    now = 1_800_000_000.0
    with connect(redis_url) as client:
        window = DedupWindow(client, CircuitBreaker(), clock=lambda: now)
        run(window.settle(Remembered("queue", PLACE, {ENTRY: timedelta(hours=1)})))
        valkey.persist(valkey.keys("hookonce:*")[0])

        now += 3599
        before = run(window.claim(PLACE, [ENTRY]))
        now += 2
        after = run(window.claim(PLACE, [ENTRY]))

    assert (before, after) == ([True], [False])


def test_mark_of_before_window_forget_is_not_believed_when_somebody_puts_it_back(
    open_sources, valkey, monkeypatch
):
    monkeypatch.setattr(deduplication, "PLACE_TTL", timedelta(0))  # else it may be a tenth of a second old
    shop = open_sources()
    shop.send(event("known"))
    key, mark = key_and_mark(valkey)
    shop.ledger.execute("DELETE FROM hookonce.events")

    connections.renew_window_key(shop.ledger)
    valkey.set(key, mark)

    assert wrong_about(shop, "known") == []


def test_receivers_of_one_ledger_believe_each_other(open_sources, valkey):
    first, second = open_sources(), open_sources()
    first.send(event("known"))
    key_and_mark(valkey)
    second.ledger.execute("DELETE FROM hookonce.events")  # nobody but the window can say that it is known

    assert second.status(event("known")) == "duplicate"


def test_receiver_that_can_not_read_the_key_believes_nothing_and_goes_on(open_sources, valkey):
    shop = open_sources()
    shop.ledger.execute("ALTER TABLE hookonce.ledger RENAME COLUMN window_key TO key_of_another_time")

    assert wrong_about(shop, "known") == []
    assert valkey.keys("hookonce:*") == []


def test_key_is_made_by_the_ledger_and_is_of_no_other(fresh_database):
    with fresh_database() as one, fresh_database() as other:
        places = []
        for url in (one, one, other):
            with connections.connect(url) as connection:
                places.append(connections.place_of(connection))
                if len(places) == 2:
                    connections.renew_window_key(connection)
                    places.append(connections.place_of(connection))

    assert [len(place.window_key) for place in places] == [32] * 4
    assert places[0] == places[1]
    assert places[1].name == places[2].name
    assert places[1].window_key != places[2].window_key


# What stands where the rate of a source is counted.

BUCKETS = {
    "infinite": "inf",
    "infinite, spelled out": "+Infinity",
    "nobody's debt": "-inf",
    "no number": "nan",
    "the largest": "1.7976931348623157e308",
    "the smallest": "-1.7976931348623157e308",
    "hexadecimal": "0x7fffffffffffffff",
    "many digits": "9" * 400,
    "in a thousand years": "33317856000000",
    "before anything": "-1",
    "zero": "0",
    "a word": "full",
    "nothing": "",
    "bytes": b"\xff\x00",
    "ten megabytes": b"9" * 10**7,
    "a list": ("rpush", "1"),
    "a hash": ("hset", "a", "1"),
    "a sorted set": ("zadd", {"a": float("inf")}),
}


@pytest.mark.parametrize("options", [LIMITED, REFUSING], ids=["held", "refusing"])
def test_no_bucket_turns_a_delivery_into_an_error(open_sources, valkey, options):
    shop, wrong = open_sources(options), []

    for number, (name, value) in enumerate(BUCKETS.items()):
        for key in ("hookonce:{limit:source:shop}:rate", "hookonce:limit:source:shop:quota"):
            valkey.delete(key)
            if isinstance(value, tuple):
                getattr(valkey, value[0])(key, *value[1:])
            else:
                valkey.set(key, value)
        wrong += [(name, *each) for each in wrong_about(shop, f"evt_{number}")]
        shop.intake.breaker.succeeded()

    assert wrong == []
    assert shop.rows(COUNT + " WHERE due_at > received_at + interval '1 second'") == [(0,)]


def test_delivery_is_put_off_for_a_day_at_most_whatever_a_bucket_owes(open_sources, valkey):
    shop = open_sources(LIMITED)
    valkey.set("hookonce:{limit:source:shop}:rate", int((time.time() + 24.9 * 3600) * 1000))

    assert wrong_about(shop, "evt") == []
    [(off,)] = shop.rows("SELECT due_at - received_at FROM hookonce.event_states")
    assert timedelta(hours=23) < off <= DAY


# What stands in the place of the queue of notifications, and of the others that we count.


def test_nothing_in_the_place_of_the_queue_keeps_an_event_from_being_stored(open_sources, valkey):
    shop, wrong = open_sources(), []
    for number, write in enumerate((("set", "1"), ("hset", "a", "1"), ("sadd", "a"), ("zadd", {"a": 1}))):
        valkey.delete("rq:queue:hookonce")
        getattr(valkey, write[0])("rq:queue:hookonce", *write[1:])
        wrong += wrong_about(shop, f"evt_{number}")
        shop.intake.breaker.succeeded()

    assert wrong == []


def test_network_that_redis_says_owes_for_ever_waits_for_one_interval(redis_url, valkey):
    interval = timedelta(seconds=5)
    with connect(redis_url) as client:
        for owed in (float("inf"), 1e300, 2**62):
            valkey.zadd("hookonce:sign-in", {"10.0.0.1": owed})

            assert timedelta(0) < take(client, "10.0.0.1", 5, interval) <= interval

        valkey.delete("hookonce:sign-in")
        valkey.set("hookonce:sign-in", "1")
        with pytest.raises(RedisUnavailable):
            take(client, "10.0.0.1", 5, interval)


@pytest.mark.parametrize(
    ("answer", "pending"), [(b":-5\r\n", 0), (b":7\r\n", 7), (b":" + b"9" * 30 + b"\r\n", MAX_COUNT)]
)
def test_number_of_notifications_is_one_that_can_be(hostile, answer, pending):
    hostile.says = answering({"other"}, answer)
    with connect(hostile.url) as client:
        assert WorkQueue(client).pending() == pending


# Numbers of workers and of sign-ins, and records of operations.


def test_register_that_is_too_long_is_not_read(redis_url, valkey):
    with connect(redis_url) as client:
        valkey.sadd("rq:workers:hookonce", *(f"rq:worker:{n}" for n in range(5001)))
        many = alive(client)
        valkey.delete("rq:workers:hookonce")
        valkey.sadd("rq:workers:hookonce", b"\xff\xfe", "x" * 100_000)

        assert many == 5000
        with pytest.raises(RedisUnavailable):
            alive(client)


RECORD = {
    "fingerprint": "f" * 32,
    "state": "completed",
    "owner": "00000000-0000-4000-8000-000000000000",
    "attempt": "1",
    "uncertain": "0",
    "lease_until": "99999999999999",
    "expires_at": "99999999999999",
    "status": "200",
    "headers": "{}",
    "body": "",
}
RECORDS = {
    "a state of nobody": {"state": "ready"},
    "no owner": {"owner": "me"},
    "a lease of words": {"state": "in_progress", "lease_until": "tomorrow"},
    "attempts without end": {"attempt": "9" * 5000},
    "no status": {"status": ""},
    "a status of no answer": {"status": "1000"},
    "a status with a line end": {"status": "200\r\nA: b"},
    "headers that are a list": {"headers": "[1]"},
    "headers of numbers": {"headers": '{"A": 1}'},
    "headers that are no JSON": {"headers": "["},
    "headers without end": {"headers": "[" * 100_000},
    "a header with a line end": {"headers": '{"A": "b\\r\\nSet-Cookie: c"}'},
    "ten megabytes": {"body": "a" * 10**7},
}


def test_record_that_can_not_be_ours_is_no_answer(redis_url, valkey):
    key, given = Key("scope", "key"), []
    store = RedisStore.at(redis_url)
    for name, fields in RECORDS.items():
        valkey.hset(f"hookonce:operation:{key.digest}", mapping=RECORD | fields)
        for ask in (lambda: store.find(key), lambda: store.claim(Claim(key, b"f", uuid.uuid4(), Terms()))):
            with contextlib.suppress(StoreUnavailable):
                given.append((name, ask()))
    valkey.hset(f"hookonce:operation:{key.digest}", mapping=RECORD | {"expires_at": "1" + "0" * 300})

    assert given == []
    assert store.find(key).kept_for <= timedelta(days=366)


# A server that answers what no Redis would.

ANSWERS = {
    "a word": b"+OK\r\n",
    "a number": b":1\r\n",
    "a negative number": b":-9223372036854775808\r\n",
    "a large number": b":9223372036854775807\r\n",
    "an endless number": b":" + b"9" * 5000 + b"\r\n",
    "a number of letters": b":abc\r\n",
    "an empty number": b":\r\n",
    "no string": b"$-1\r\n",
    "a string of less than nothing": b"$-5\r\n",
    "a string of letters": b"$abc\r\n",
    "no list": b"*-1\r\n",
    "a list of less than nothing": b"*-7\r\n",
    "an empty list": b"*0\r\n",
    "a list that is too long": b"*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n",
    "a list of numbers": b"*1\r\n:1\r\n",
    "a list of lists": b"*1\r\n*1\r\n*0\r\n",
    "lists in lists": b"*1\r\n" * 50_000 + b":1\r\n",
    "a map": b"%1\r\n+a\r\n+b\r\n",
    "a map of lists": b"%1\r\n*1\r\n+a\r\n*0\r\n",
    "a set": b"~1\r\n+a\r\n",
    "null": b"_\r\n",
    "infinity": b",inf\r\n",
    "no float": b",nan\r\n",
    "a large integer": b"(" + b"9" * 4000 + b"\r\n",
    "true": b"#t\r\n",
    "a verbatim string": b"=15\r\ntxt:Some string\r\n",
    "bytes that are no text": b"$4\r\n\xff\xfe\x00\x80\r\n",
    "an error": b"-ERR no\r\n",
    "an error of bytes": b"-\xff\xfe\x00\r\n",
    "a long error": b"-" + b"A" * 500_000 + b"\r\n",
    "no such script": b"-NOSCRIPT no\r\n",
    "moved": b"-MOVED 1 127.0.0.1:1\r\n",
    "asked": b"-ASK x y\r\n",
    "loading": b"-LOADING\r\n",
    "read-only": b"-READONLY no\r\n",
    "a push": b">2\r\n+invalidate\r\n*1\r\n+a\r\n",
    "a push of another": b">3\r\n+MOVING\r\n:1\r\n:15\r\n",
    "no protocol": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "nothing": b"\r\n",
    "two answers": b":0\r\n:0\r\n",
}
WAITED_FOR = {
    "half a line": b"+OK",
    "half a string": b"$100\r\na",
    "half a list": b"*3\r\n:1\r\n",
}
"""What a client believes to have no end yet; it costs a timeout."""


def answering(phases, answer):
    def says(phase, command):
        return answer if phase in phases else honest(phase, command)

    return says


@pytest.mark.parametrize("phase", ["hello", "claim", "settle", "limit", "other"])
def test_no_answer_of_redis_turns_a_delivery_into_an_error(open_sources, hostile, phase, caplog):
    shop, wrong = open_sources(LIMITED, redis_url=hostile.url), []

    for number, (name, answer) in enumerate((ANSWERS | WAITED_FOR).items()):
        hostile.says = answering({phase}, answer)
        shop.intake._client.connection_pool.disconnect()  # noqa: SLF001  so that it says hello
        shop.intake.breaker.succeeded()
        wrong += [(name, *each) for each in wrong_about(shop, f"evt_{number}")]

    assert wrong == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


MAPS = {
    "a slot of itself": b"*1\r\n:1\r\n",
    "a range of words": b"*1\r\n*3\r\n+a\r\n+b\r\n*2\r\n+h\r\n+p\r\n",
    "a node without a place": b"*1\r\n*3\r\n:0\r\n:16383\r\n*0\r\n",
    "too many slots": b"*1\r\n*3\r\n:0\r\n:99999\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n",
}


@pytest.mark.parametrize("command", [b"CLUSTER", b"COMMAND", b"INFO", b"SET", b"EVAL"])
def test_no_answer_of_a_cluster_turns_a_delivery_into_an_error(open_sources, command):
    answers, wrong = ANSWERS | MAPS, []
    with contextlib.closing(HostileRedis()) as node:
        port = int(node.url.rpartition(":")[2])
        whole = b"*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$1\r\na\r\n" % port
        usual = {b"CLUSTER": whole, b"COMMAND": b"*0\r\n", b"INFO": b"$0\r\n\r\n", b"SET": b"$-1\r\n"}
        shop = open_sources(LIMITED, WINDOW_REDIS_URL=node.url)
        for number, (name, answer) in enumerate(answers.items()):
            node.says = lambda phase, asked, said=usual | {command: answer}: (
                said.get(asked[0]) or honest(phase, asked)
            )
            shop.intake._client.close()  # noqa: SLF001  so that it asks for the map
            shop.intake.breaker.succeeded()
            wrong += [(name, *each) for each in wrong_about(shop, f"evt_{number}")]

    assert wrong == []


def test_delivery_hangs_on_no_answer_that_never_ends(open_sources, hostile):
    def dripping(piece, pause):
        def says(phase, command):
            def drip():
                while not hostile.ended.wait(pause):
                    yield piece

            return drip() if phase != "hello" else honest(phase, command)

        return says

    shop, wrong = open_sources(LIMITED, redis_url=hostile.url), []
    endless = {
        "a byte now and then": dripping(b"*", 0.05),
        "a list without end": lambda phase, command: (
            [b"*1000000000\r\n", *[b":1\r\n" * 100_000] * 40] if phase != "hello" else honest(phase, command)
        ),
        "a string without end": lambda phase, command: (
            [b"$1000000000\r\n", *[b"a" * 1_000_000] * 40] if phase != "hello" else honest(phase, command)
        ),
        "pushes without end": dripping(b">2\r\n+message\r\n+a\r\n" * 5000, 0),
    }

    for number, (name, says) in enumerate(endless.items()):
        hostile.says = says
        shop.intake._client.connection_pool.disconnect()  # noqa: SLF001
        shop.intake.breaker.succeeded()
        wrong += [(name, *each) for each in wrong_about(shop, f"evt_{number}")]

    assert wrong == []


def test_every_page_that_asks_redis_is_answered_whatever_it_says(open_sources, hostile):
    shop, wrong = open_sources(redis_url=hostile.url), []
    client = shop.app.test_client()

    for name, answer in ANSWERS.items():
        hostile.says = answering({"other"}, answer)
        wrong += [(name, page) for page in ("/metrics", "/readyz") if client.get(page).status_code != 200]

    assert wrong == []


def test_whoever_asks_redis_hears_that_it_is_away_whatever_it_says(hostile):
    everything, wrong = {"claim", "settle", "limit", "other"}, []
    key, wanted = Key("scope", "key"), Claim(Key("scope", "key"), b"f", uuid.uuid4(), Terms())

    for name, answer in ANSWERS.items():
        hostile.says = answering(everything, answer)
        with connect(hostile.url) as client:
            questions = (
                WorkQueue(client).notify_if_idle,
                partial(alive, client),
                partial(take, client, "10.0.0.1", 5, timedelta(seconds=5)),
                DedupWindow(client, CircuitBreaker()).forget,
                partial(RedisStore(client).find, key),
                partial(RedisStore(client).claim, wanted),
                lambda: list(servers.redis_server(hostile.url)),
            )
            for question in questions:
                try:
                    with contextlib.suppress(RedisUnavailable, StoreUnavailable):
                        question()
                except Exception as error:  # noqa: BLE001
                    wrong.append((name, question, repr(error)))

    assert wrong == []


def test_script_is_called_by_its_own_digest_whatever_redis_calls_it(hostile):
    asked = []

    def says(phase, command):
        asked.append(command[0])
        return b"-NOSCRIPT no\r\n" if command[0] == b"EVALSHA" else honest(phase, command)

    hostile.says = says
    with connect(hostile.url) as client:
        window = DedupWindow(client, CircuitBreaker())
        answers = [run(window.claim(PLACE, [ENTRY])) for _ in range(2)]

    assert answers == [[False], [False]]
    assert b"SCRIPT" not in asked
