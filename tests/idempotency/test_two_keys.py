"""A header that is sent twice is no key; a key with a comma stands in quotes."""

import json

import flask
import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient

from hookonce import IdempotentRoute, idempotent
from hookonce.receiver.idempotency.postgresql import PostgresStore
from tests.support.idempotency.applications import configure_django

NAME = "Idempotency-Key"


@pytest.fixture
def once(database_url):
    store = PostgresStore.at(database_url)
    yield idempotent("pay", scope=None, store=store)
    store.close()


def of_flask(once, keys):
    app = flask.Flask("shop")
    app.post("/")(once(lambda: ("paid", 201)))
    answer = app.test_client().post("/", headers=[(NAME, key) for key in keys])
    return answer.status_code, answer.get_data(as_text=True)


def of_django(once, keys):
    configure_django()
    request = RequestFactory().post("/", headers={NAME: ",".join(keys)})
    answer = once(lambda _: HttpResponse("paid", status=201))(request)
    return answer.status_code, answer.content.decode()


def of_fastapi(once, keys):
    app, router = FastAPI(), APIRouter(route_class=IdempotentRoute)

    def pay():
        return "paid"

    router.post("/", status_code=201)(once(pay))
    app.include_router(router)
    with TestClient(app) as client:
        answer = client.post("/", headers=[(NAME, key) for key in keys])
    return answer.status_code, answer.text


@pytest.mark.parametrize("ask", [of_flask, of_django, of_fastapi], ids=lambda each: each.__name__)
def test_key_that_is_sent_twice_is_refused_in_every_framework(once, ask):
    for keys in (["one", "two"], ["one", "one"], ['"one"', '"two"'], ["one,two"]):
        status, said = ask(once, keys)

        assert (keys, status, json.loads(said)["code"]) == (keys, 400, "bad_key")
    assert ask(once, ['"one,two"'])[0] == 201
