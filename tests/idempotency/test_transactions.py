"""The answer in the transaction of the work: each kind of connection and session, in each framework that blocks."""

import flask
import psycopg
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient
from pydantic import BaseModel
from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker
from sqlalchemy.pool import NullPool

from hookonce import IdempotentRoute, RedisStore, current_operation, idempotent
from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.ledger.database import engines

KEY = {"Idempotency-Key": "one"}
INSERT = "INSERT INTO public.paid VALUES (7)"


@pytest.fixture
def ledger(database_url):
    with psycopg.connect(libpq_url(database_url), autocommit=True) as connection:
        connection.execute("CREATE TABLE public.paid (id int)")
        yield connection


def psycopg_connection(url):
    return lambda: psycopg.connect(libpq_url(url)), lambda opened: opened.execute(INSERT)


def engine_of(url):
    return engines.engine(url, poolclass=NullPool)


def engine_begin(url):
    return engine_of(url).begin, lambda opened: opened.execute(text(INSERT))


def session_begin(url):
    return sessionmaker(engine_of(url)).begin, lambda opened: opened.execute(text(INSERT))


def session_transaction(url):
    session = Session(engine_of(url))
    return session.begin, lambda _: session.execute(text(INSERT))


def app_of(store, transaction, work, answers):
    app = flask.Flask("shop")
    app.testing = True

    @app.post("/")
    @idempotent("pay", scope=None, store=store, transaction=transaction)
    def pay():
        work(current_operation().transaction)
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return "paid", answer

    return app.test_client()


@pytest.mark.parametrize("kind", [psycopg_connection, engine_begin, session_begin, session_transaction])
def test_answer_is_stored_with_the_work_or_not_at_all(database_url, ledger, store, kind):
    client = app_of(store, *kind(database_url), [ArithmeticError(), 503, 201])

    with pytest.raises(ArithmeticError):
        client.post("/", headers=KEY)
    statuses = [client.post("/", headers=KEY).status_code for _ in range(3)]

    assert statuses == [503, 201, 201]
    assert ledger.execute("SELECT count(*) FROM public.paid").fetchone() == (1,)


@pytest.mark.parametrize("kind", [psycopg_connection, engine_begin])
def test_work_of_an_attempt_that_was_overtaken_rolls_back(database_url, ledger, store, kind):
    opened, work = kind(database_url)

    def slowly(transaction):
        work(transaction)
        ledger.execute("UPDATE hookonce.idempotency SET owner = gen_random_uuid()")

    answer = app_of(store, opened, slowly, [201]).post("/", headers=KEY)

    assert answer.status_code == 202
    assert ledger.execute("SELECT count(*) FROM public.paid").fetchone() == (0,)
    assert ledger.execute("SELECT state FROM hookonce.idempotency").fetchall() == [("in_progress",)]


def test_function_stores_its_value_in_a_transaction(database_url, ledger, store):
    pay = idempotent("pay", scope=None, store=store)
    opened, work = psycopg_connection(database_url)

    for broken in (True, False):
        try:
            with pay.operation("one", 5) as operation, opened() as connection:
                work(connection)
                operation.complete("paid", within=connection)
                assert not broken
        except AssertionError:
            assert broken

    with pay.operation("one", 5) as operation:
        assert (operation.is_done, operation.value) == (True, "paid")
    assert ledger.execute("SELECT count(*) FROM public.paid").fetchone() == (1,)


def test_transaction_needs_a_store_in_postgresql(redis_url):
    with pytest.raises(TypeError, match="only where PostgreSQL keeps the keys"):
        idempotent("pay", scope=None, store=RedisStore.at(redis_url), moves_money=False, transaction=object)


def test_transaction_needs_a_function_that_blocks(store):
    async def pay():
        """Await nothing."""

    with pytest.raises(TypeError, match="not async"):
        idempotent("pay", scope=None, store=store, transaction=object)(pay)


def test_what_is_no_connection_is_said(store):
    pay = idempotent("pay", scope=None, store=store)

    with pytest.raises(TypeError, match="str is no connection"), pay.operation("one", 5) as operation:
        operation.complete(1, within="postgresql://")


def test_route_stores_what_its_response_model_lets_through(store):
    class Paid(BaseModel):
        amount: int

    router, app = APIRouter(route_class=IdempotentRoute), FastAPI()

    @router.post("/", status_code=202, response_model=Paid)
    @idempotent("pay", scope=None, store=store)
    def pay(order: Paid):
        return {"amount": order.amount, "secret": "of the till"}

    @router.get("/")
    def plain():
        return "as ever"

    app.include_router(router)
    with TestClient(app) as client:
        answers = [client.post("/", json={"amount": 5}, headers=KEY) for _ in range(2)]
        refused = client.post("/", json={"amount": "x"}, headers={"Idempotency-Key": "two"})

        assert [(answer.status_code, answer.json()) for answer in answers] == [(202, {"amount": 5})] * 2
        assert refused.status_code == 422
        assert client.get("/").json() == "as ever"
