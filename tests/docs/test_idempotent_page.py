"""Runs the endpoints of docs/how-to/idempotent-endpoints.md."""

import re
import types
from pathlib import Path

import psycopg
import pytest
from django.test import RequestFactory
from fastapi.testclient import TestClient

from hookonce.receiver.config.server_urls import libpq_url
from hookonce.receiver.endpoints import policy, stores
from tests.support.idempotency.applications import django_database

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "idempotent-endpoints.md"


class Bank:
    """Stands for the other side, which knows its keys."""

    def __init__(self):
        self.keys = []

    def charge(self, amount, idempotency_key):
        self.keys.append(idempotency_key)
        return f"ch_{amount}"

    async def refund(self, charge, idempotency_key):
        self.keys.append(idempotency_key)
        return f"re_{charge}"

    def book(self, order, key):
        self.keys.append(key)
        return f"{order} is on its way"


@pytest.fixture
def page(database_url, redis_url, monkeypatch):
    """The page's code as a module."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    stores.in_ledger.cache_clear()  # of other tests
    with django_database(ENGINE="django.db.backends.postgresql", **parameters_of(database_url)):
        module = types.ModuleType("shop")
        module.bank = module.carrier = Bank()
        module.redis_url = redis_url
        source = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
        exec(compile(source, str(PAGE), "exec"), vars(module))  # noqa: S102  our own page
        yield module
    stores.in_ledger().close()
    stores.in_ledger.cache_clear()


def parameters_of(url):
    told = psycopg.conninfo.conninfo_to_dict(libpq_url(url))
    names = {"dbname": "NAME", "user": "USER", "host": "HOST", "port": "PORT", "password": "PASSWORD"}
    return {django: told[libpq] for libpq, django in names.items() if libpq in told}


def test_flask_view_charges_once(page):
    headers = {"Idempotency-Key": "one", "Authorization": "Bearer token-of-acme"}

    answers = [
        page.shop.test_client().post("/payments", json={"amount": 5}, headers=headers) for _ in range(2)
    ]
    stranger = page.shop.test_client().post(
        "/payments", json={"amount": 5}, headers={"Idempotency-Key": "one"}
    )

    assert stranger.status_code == 401
    assert [(answer.status_code, answer.json) for answer in answers] == [(201, {"charge": "ch_5"})] * 2
    assert len(page.bank.keys) == 1


def test_django_view_stores_its_answer_with_its_order(page, database_url):
    from django.db import connection  # noqa: PLC0415  it reads the settings

    def save_order(body):
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO public.orders VALUES (%s)", [body])
        if body == b"broken":
            raise ArithmeticError
        return body.decode()

    page.save_order = save_order
    with psycopg.connect(libpq_url(database_url), autocommit=True) as ledger:
        ledger.execute("CREATE TABLE public.orders (body bytea)")
        for key, body in (("one", "tea"), ("one", "tea"), ("two", "broken")):
            request = RequestFactory().post("/orders", body, "text/plain", headers={"Idempotency-Key": key})
            request.user = types.SimpleNamespace(pk=7)
            try:
                assert page.create_order(request).status_code == 201
            except ArithmeticError:
                assert key == "two"

        assert ledger.execute("SELECT body FROM public.orders").fetchall() == [(b"tea",)]
        states = ledger.execute("SELECT key, state FROM hookonce.idempotency ORDER BY key").fetchall()
    assert states == [("one", "completed"), ("two", "failed_retryable")]


def test_fastapi_route_refunds_once(page):
    headers = {"Idempotency-Key": "one", "Authorization": "Bearer token-of-acme"}

    answers = [TestClient(page.api).post("/refunds", json={"charge": "5"}, headers=headers) for _ in range(2)]
    stranger = TestClient(page.api).post("/refunds", json={"charge": "5"}, headers={"Idempotency-Key": "one"})

    assert stranger.status_code in {401, 403}
    assert [(answer.status_code, answer.json()) for answer in answers] == [(201, {"refund": "re_5"})] * 2
    assert len(page.bank.keys) == 1


def test_message_is_handled_once(page):
    message = {"id": "m1", "tenant": "a", "order": "tea"}

    assert [page.on_message(message) for _ in range(2)] == ["tea is on its way"] * 2
    assert len(page.carrier.keys) == 1


def test_table_says_which_answers_are_kept():
    said = re.search(r"failed \(an exception, ([\d, ]+), 5xx\)", PAGE.read_text())

    assert {int(status) for status in said[1].split(",")} == policy.RETRYABLE
