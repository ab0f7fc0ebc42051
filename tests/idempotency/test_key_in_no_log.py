"""A client's Idempotency-Key stands in no log as it came, whatever becomes of its request."""

import logging

import flask
import psycopg

from hookonce import idempotent
from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load
from hookonce.receiver import logs
from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.idempotency.postgresql import PostgresStore
from hookonce.receiver.idempotency.redis_hash import RedisStore
from hookonce.receiver.redis import client
from tests.support.in_process import Receiver

CLIENTS_KEY = "order-of-ann-7f3a"


def logged(caplog):
    formatter = logs.formatter()
    return [formatter.format(record) for record in caplog.records]


def test_delivery_whose_id_is_an_idempotency_key_is_logged_by_its_hash(database_url, redis_url, caplog):
    caplog.set_level(logging.DEBUG)
    provider, secret = load("sanity"), "a secret of the tests"
    receiver = Receiver(database_url, redis_url)
    receiver.add("sanity", provider, secret)
    body = b'{"_id": "document", "_type": "post"}'
    headers = provider.sign(body, secret, receiver.now, event_id=CLIENTS_KEY)
    try:
        taken = receiver.send("sanity", Delivery("POST", "/", headers, body))
    finally:
        receiver.close()

    (line,) = [vars(record) for record in caplog.records if record.getMessage() == "delivery"]
    assert taken.status_code == 200
    assert line["event_ids"] == [logs.hashed(CLIENTS_KEY)]
    assert [each for each in logged(caplog) if CLIENTS_KEY in each] == []


def test_operation_names_no_key_in_a_log_whatever_becomes_of_it(database_url, redis_url, caplog):
    caplog.set_level(logging.DEBUG)
    ledger = PostgresStore.at(database_url)
    with (
        psycopg.connect(libpq_url(database_url), autocommit=True) as connection,
        client.connect(redis_url) as redis,
    ):
        stores = {
            "ledger": ledger,
            "redis": RedisStore(redis),
            "nowhere": PostgresStore.at("postgresql://127.0.0.1:1/x"),
        }
        met = {name: [ask(store, name) for _ in range(2)] for name, store in stores.items()}
        connection.execute(
            "ALTER TABLE hookonce.idempotency ADD CONSTRAINT unscoped CHECK (scope = '') NOT VALID"
        )
        met["a row that does not fit"] = [ask(ledger, "unfit")]
    ledger.close()

    assert met == {
        "ledger": [200, 200],
        "redis": [200, 200],
        "nowhere": [503, 503],
        "a row that does not fit": [503],
    }
    assert [each for each in logged(caplog) if CLIENTS_KEY in each] == []
    assert any("CheckViolation (unscoped)" in each for each in logged(caplog))


def test_traceback_in_a_log_quotes_no_row(database_url, caplog):
    with psycopg.connect(libpq_url(database_url), autocommit=True) as connection:
        connection.execute("CREATE TABLE orders (key text PRIMARY KEY)")
        connection.execute("INSERT INTO orders VALUES (%s)", [CLIENTS_KEY])
        try:
            connection.execute("INSERT INTO orders VALUES (%s)", [CLIENTS_KEY])
        except psycopg.IntegrityError:
            try:
                int("and then this")
            except ValueError:
                logging.getLogger("hookonce.tests").exception("a request failed")

    (line,) = logged(caplog)
    assert CLIENTS_KEY not in line
    assert "UniqueViolation: duplicate key value" in line
    assert "DETAIL:  (left out)" in line
    assert "ValueError: invalid literal for int() with base 10: 'and then this'" in line


def ask(store, name):
    app = flask.Flask("shop")
    app.post("/")(idempotent(name, scope=None, store=store, moves_money=False)(lambda: "paid"))
    return app.test_client().post("/", headers={"Idempotency-Key": CLIENTS_KEY}).status_code
