"""A store with sealed results does what any store does, and has no answer in the clear."""

import os
from datetime import timedelta
from uuid import uuid4

import pytest

from hookonce import SealedStore
from hookonce.receiver.config.encryption_keys import configured_keyring
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.encryption import Keyring
from hookonce.receiver.idempotency.records import Claim, Key, Result, State, StoreUnavailable, Terms
from hookonce.receiver.ledger.database import connections
from hookonce.receiver.ledger.maintenance import key_rotation
from tests.support.idempotency.checks import CORE, FURTHER
from tests.support.idempotency.places import OnPostgres

OLD, NEW = os.urandom(32), os.urandom(32)
KEY = Key("scope", "key")
ANSWER = Result(201, {"Location": "/seven"}, b"seven")
TERMS = Terms(timedelta(minutes=1), timedelta(hours=1))


class OnSealedPostgres(OnPostgres):
    def open(self):
        return SealedStore(super().open(), [OLD])

    def nowhere(self):
        return SealedStore(super().nowhere(), [OLD])


def answered(store, key=KEY, answer=ANSWER):
    claim = store.claim(Claim(key, b"", uuid4(), TERMS))
    store.complete(claim, State.COMPLETED, answer)


@pytest.mark.parametrize("check", [*CORE, *FURTHER], ids=lambda check: check.__name__)
def test_sealed_store_does_as_the_suite_says(database_url, check):
    place = OnSealedPostgres(database_url)
    check(place)
    place.close()


def test_answer_lies_sealed_and_is_opened_for_who_asks(place):
    store = SealedStore(place.open(), [OLD])
    answered(store)

    assert store.find(KEY).result == ANSWER
    kept = place.open().find(KEY).result
    assert kept.status == 201
    assert b"seven" not in kept.body
    assert "/seven" not in kept.headers.values()


def test_answer_that_cannot_be_opened_is_as_if_the_store_was_away(place):
    answered(SealedStore(place.open(), [OLD]))

    with pytest.raises(StoreUnavailable, match="is not configured here"):
        SealedStore(place.open(), [NEW]).find(KEY)


def test_answer_of_before_the_keys_is_given_again_by_the_ledger(database_url):
    place = OnPostgres(database_url)
    answered(place.open())

    assert SealedStore(place.open(), [OLD]).find(KEY).result == ANSWER
    place.close()


@pytest.mark.parametrize("keys", [[OLD], []], ids=["sealed", "in the clear"])
def test_rotation_seals_answers_anew(database_url, keys):
    place = OnPostgres(database_url)
    before = SealedStore(place.open(), keys)
    for number in range(3):
        answered(before, Key("scope", str(number)), Result(200, {"A": "b"}, b"body %d" % number))
    running = Claim(Key("scope", "running"), b"", uuid4(), TERMS)
    before.claim(running)

    with connections.connect(database_url) as connection:
        *_, done = key_rotation.rotate(connection, Keyring([NEW, OLD]), "ann")

    after = SealedStore(place.open(), [NEW])
    found = [after.find(Key("scope", str(number))).result for number in range(3)]
    assert found == [Result(200, {"A": "b"}, b"body %d" % number) for number in range(3)]
    assert (done.sealed, done.left) == (3, {})
    after.complete(running, State.COMPLETED, ANSWER)
    assert after.find(running.key).result == ANSWER
    place.close()


def test_keys_of_the_configuration_are_found(tmp_path):
    file = tmp_path / "hookonce.toml"
    file.write_text('[receiver]\nencryption_keys = ["env:KEY"]\n')
    environ = {"HOOKONCE_CONFIG": str(file), "KEY": OLD.hex()}

    assert configured_keyring(environ).first == Keyring([OLD]).first
    assert not configured_keyring({"HOOKONCE_CONFIG": "/dev/null"}).is_on
    with pytest.raises(ConfigError, match="entry 1 is missing; set KEY"):
        configured_keyring(environ | {"KEY": ""})
