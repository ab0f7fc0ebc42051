"""Where others can write (Redis, DynamoDB), answers are sealed by themselves and none that is not ours is given."""

import base64
import json
import os
from datetime import timedelta
from uuid import uuid4

import flask
import pytest

from hookonce import SealedStore, idempotent
from hookonce.receiver.idempotency.records import Claim, Key, Result, State, StoreUnavailable, Terms, scope_of
from hookonce.receiver.redis import client
from tests.support.idempotency.checks import CORE, FURTHER
from tests.support.idempotency.places import OnDynamo, OnRedis, open_dynamo

SECRET = os.urandom(32)
KEY = Key("scope", "key")
TERMS = Terms(timedelta(minutes=1), timedelta(hours=1))
ANSWER = Result(201, {"Location": "/seven"}, b"seven")
REFUSED = "is not sealed, though encryption_keys are set"


class Elsewhere:
    """A place that others can write to, and what they would do there."""

    def __init__(self, place, rewrite):
        self.plain, self.rewrite = place, rewrite

    def open(self):
        return SealedStore(self.plain.open(), [SECRET])

    def __getattr__(self, name):
        return getattr(self.plain, name)


def in_redis(url):
    def rewrite(key, **fields):
        with client.connect(url) as redis:
            redis.hset(f"hookonce:operation:{key.digest}", mapping=fields)

    return Elsewhere(OnRedis(url), rewrite)


def in_dynamo(endpoint):
    place = OnDynamo(endpoint)

    def rewrite(key, **fields):
        dynamo = open_dynamo(endpoint, place.table).client
        item = dynamo.get_item(TableName=place.table, Key={"key": {"S": key.digest}})["Item"]
        kinds = {"status": "N", "fingerprint": "B", "body": "B"}
        item |= {name: {kinds.get(name, "S"): value} for name, value in fields.items()}
        dynamo.put_item(TableName=place.table, Item=item)
        dynamo.close()

    return Elsewhere(place, rewrite)


@pytest.fixture(params=["redis", "dynamodb"])
def place(request):
    if request.param == "redis":
        made = in_redis(request.getfixturevalue("redis_url"))
    else:
        made = in_dynamo(request.getfixturevalue("dynamo_endpoint"))
    yield made
    made.close()


def answered(store, key=KEY, answer=ANSWER):
    claim = store.claim(Claim(key, b"asked", uuid4(), TERMS))
    store.complete(claim, State.COMPLETED, answer)


@pytest.mark.parametrize("check", [*CORE, *FURTHER], ids=lambda check: check.__name__)
def test_sealed_redis_does_as_the_suite_says(redis_url, check):
    place = in_redis(redis_url)
    check(place)
    place.close()


def test_operation_seals_its_answers_by_the_configured_keys(place, tmp_path, monkeypatch):
    (tmp_path / "hookonce.toml").write_text('[receiver]\nencryption_keys = ["env:KEY"]\n')
    monkeypatch.setenv("HOOKONCE_CONFIG", str(tmp_path / "hookonce.toml"))
    monkeypatch.setenv("KEY", SECRET.hex())
    app = flask.Flask("shop")
    once = idempotent("pay", scope=None, store=place.plain.open(), moves_money=False)
    app.post("/")(once(lambda: flask.Response("of ann", 201, {"X-Whose": "of ann"})))

    first, again = (app.test_client().post("/", headers={"Idempotency-Key": "one"}) for _ in range(2))
    with once.operation("two", "asked") as operation:
        operation.complete("of ann")

    kept = [place.plain.open().find(Key(scope_of("pay"), key)) for key in ("one", "two")]
    assert (first.status_code, first.data, first.headers["X-Whose"]) == (201, b"of ann", "of ann")
    assert (again.status_code, again.data, again.headers["X-Whose"]) == (201, b"of ann", "of ann")
    assert again.headers["Idempotency-Replayed"] == "true"
    assert None not in kept
    assert "of ann" not in str(kept)


def test_answer_that_is_not_sealed_is_refused_until_its_retention_is_over(place):
    answered(place.plain.open())
    store = place.open()

    for ask in (lambda: store.find(KEY), lambda: store.claim(Claim(KEY, b"asked", uuid4(), TERMS))):
        with pytest.raises(StoreUnavailable, match=REFUSED) as refused:
            ask()
        assert "seven" not in str(refused.value)

    place.age(KEY, timedelta(hours=2))
    assert store.claim(Claim(KEY, b"asked", uuid4(), TERMS)).attempt == 1


def test_client_is_told_to_come_again_where_an_answer_was_forged(place):
    app = flask.Flask("shop")
    done = []
    store = place.open()
    app.post("/")(
        idempotent("pay", scope=None, store=store, moves_money=False)(lambda: done.append(1) or "paid")
    )
    ask = lambda: app.test_client().post("/", headers={"Idempotency-Key": "one"})  # noqa: E731
    assert ask().data == b"paid"

    place.rewrite(Key(scope_of("pay"), "one"), status="200", headers="{}", body=b"forged")

    refused = ask()
    assert (refused.status_code, refused.json["code"], done) == (503, "keys_unavailable", [1])


def test_nothing_that_is_told_of_a_sealed_answer_can_be_changed(place):
    other = Key("scope", "other")
    believed = []
    for number, forged in enumerate(
        [{"status": "200"}, {"state": "failed_final"}, {"fingerprint": b"other"}, {"headers": "{}"}]
    ):
        key = Key("scope", str(number))
        answered(place.open(), key)
        place.rewrite(key, **forged)
        believed += took(place, key, forged)
    answered(place.open())
    answered(place.open(), other, Result(201, {}, b"of another"))
    moved = place.plain.open().find(other).result
    place.rewrite(KEY, headers=json.dumps(dict(moved.headers)), body=moved.body)
    believed += took(place, KEY, "an answer of another key")

    assert believed == []


def took(place, key, forged):
    try:
        return [(forged, place.open().find(key))]
    except StoreUnavailable:
        return []


def test_note_that_an_answer_was_too_large_is_sealed_too(place):
    answered(place.open(), KEY, Result(200, {}, b"", is_kept=False))
    assert place.open().find(KEY).result == Result(200, {}, b"", is_kept=False)

    answered(place.plain.open(), Key("scope", "forged"), Result(200, {}, b"", is_kept=False))
    with pytest.raises(StoreUnavailable, match=REFUSED):
        place.open().find(Key("scope", "forged"))


def test_store_with_keys_of_its_own_is_sealed_once(place, tmp_path, monkeypatch):
    (tmp_path / "hookonce.toml").write_text('[receiver]\nencryption_keys = ["env:KEY"]\n')
    monkeypatch.setenv("HOOKONCE_CONFIG", str(tmp_path / "hookonce.toml"))
    monkeypatch.setenv("KEY", base64.b64encode(os.urandom(32)).decode())
    store = place.open()

    assert idempotent("pay", scope=None, store=store, moves_money=False).store is store
