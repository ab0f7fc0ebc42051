"""Secrets that senders hand out: the first one is kept and trusted, another one only when the operator says so."""

import contextlib
import hashlib
import hmac
import json
import logging

import psycopg
import pytest

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver.encryption import OFF, Keyring
from hookonce.receiver.intake import handshake_secrets
from hookonce.receiver.intake.handshake_secrets import HandshakeSecrets
from hookonce.receiver.ledger import handshake_secrets as ledger_secrets
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.source import Quarantine
from tests.support.in_process import Receiver

FIRST, SECOND = "b537207f20cbfa02357cf448134da559", "00000000000000000000000000000000"
BODY = b'{"events": [{"action": "added", "resource": {"gid": "%d", "resource_type": "task"}, "user": {"gid": "1"}}]}'


def probe(secret, name="asana"):
    if name == "notion":
        return Delivery("POST", "", {}, json.dumps({"verification_token": secret}).encode())
    return Delivery("POST", "", {"x-hook-secret": secret}, b"{}")


def delivery(secret, number=1):
    body = BODY % number
    return Delivery(
        "POST", "", {"x-hook-signature": hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}, body
    )


@pytest.fixture
def asana(database_url, redis_url, monkeypatch):
    monkeypatch.setattr(handshake_secrets, "SECRET_TTL", handshake_secrets.timedelta(0))
    running = Receiver(database_url, redis_url)
    running.add("asana", load("asana"))
    yield running
    running.close()


@pytest.fixture
def ledger(database_url):
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


def test_first_secret_verifies_what_comes_after_it(asana):
    before = asana.send("asana", delivery(FIRST))
    answer = asana.send("asana", probe(FIRST))
    after, forged = asana.send("asana", delivery(FIRST)), asana.send("asana", delivery(SECOND, 2))

    assert (before.status_code, answer.status_code, answer.headers["X-Hook-Secret"]) == (503, 200, FIRST)
    assert (after.status_code, forged.status_code) == (200, 401)
    assert asana.query("SELECT source, secret FROM hookonce.handed_secrets") == [("asana", FIRST)]


def test_same_secret_is_answered_again_and_another_refused_until_forgotten(asana, ledger):
    statuses = [asana.send("asana", probe(secret)).status_code for secret in (FIRST, FIRST, SECOND, FIRST)]

    ledger_secrets.forget(ledger, "asana", "me")

    assert statuses == [200, 200, 401, 200]
    assert asana.send("asana", probe(SECOND)).status_code == 200
    assert asana.send("asana", delivery(SECOND)).status_code == 200


@pytest.mark.parametrize("name", ["asana", "notion"])
def test_refused_secret_is_noted_and_shown_nowhere(asana, caplog, name):
    asana.add(name, load(name))
    with caplog.at_level(logging.INFO):
        asana.send(name, probe(FIRST, name))
        asana.send(name, probe(SECOND, name))
    asana.app.extensions["hookonce"].close()

    rows = asana.query("SELECT source, reason, detail, headers::text, body_prefix FROM hookonce.rejected")

    assert [(row[0], row[1]) for row in rows] == [(name, "bad_signature")]
    assert "hookonce sources secrets forget" in rows[0][2]
    assert SECOND not in str(rows)
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert ["handed out" in warning for warning in warnings] == [True, True]
    assert not {FIRST, SECOND} & {word for record in caplog.records for word in str(vars(record)).split("'")}


def test_refused_secret_is_not_even_quarantined(database_url, redis_url):
    keyring = Keyring([bytes(32)])
    with contextlib.closing(Receiver(database_url, redis_url, keyring=keyring)) as receiver:
        receiver.add("asana", load("asana"), quarantine=Quarantine())
        for each in (probe(FIRST), delivery(SECOND), probe(SECOND)):
            receiver.send("asana", each)

    assert receiver.query("SELECT count(*) FROM hookonce.rejected") == [(2,)]
    assert receiver.query("SELECT count(*) FROM hookonce.quarantine") == [(1,)]


def test_configured_secret_goes_before_one_that_was_handed_out(asana):
    asana.add("asana", load("asana"), "the-configured-secret")

    answers = [asana.send("asana", each).status_code for each in (probe(FIRST), probe(SECOND))]

    assert answers == [200, 401]
    assert asana.send("asana", delivery("the-configured-secret")).status_code == 200
    assert asana.send("asana", delivery(FIRST, 2)).status_code == 401


def test_secret_is_not_accepted_while_the_ledger_is_away(redis_url):
    away = Receiver("postgresql://nobody@127.0.0.1:1/none", redis_url)
    away.add("asana", load("asana"))
    try:
        answers = [away.send("asana", each) for each in (probe(FIRST), delivery(FIRST))]
    finally:
        away.close()

    assert [answer.status_code for answer in answers] == [503, 503]
    assert all(answer.headers["Retry-After"] for answer in answers)
    assert "X-Hook-Secret" not in answers[0].headers


def test_secret_is_looked_for_again_after_a_moment_only(asana, ledger, monkeypatch):
    monkeypatch.setattr(handshake_secrets, "SECRET_TTL", handshake_secrets.timedelta(seconds=1))
    now = 0.0
    out = HandshakeSecrets(asana.database_url, lambda: now)
    found = [out.with_secret(asana.sources["asana"]).secrets]
    ledger_secrets.keep(ledger, "asana", FIRST, OFF)

    found.append(out.with_secret(asana.sources["asana"]).secrets)
    now = 1.5
    found.append(out.with_secret(asana.sources["asana"]).secrets)
    out.close()

    assert found == [(), (), (FIRST,)]


def test_ledger_is_asked_only_for_sources_that_need_it(asana):
    out = HandshakeSecrets("postgresql://nobody@127.0.0.1:1/none")
    asana.add("with_secret", load("asana"), "secret")
    asana.add("without_probes", load("stripe"))

    for name in ("with_secret", "without_probes"):
        assert out.with_secret(asana.sources[name]) is asana.sources[name]
    with pytest.raises(LedgerUnavailable):
        out.with_secret(asana.sources["asana"])
