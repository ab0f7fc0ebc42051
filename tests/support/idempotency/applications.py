"""One shop in Flask, Django and FastAPI: `POST /payments` pays, once per key."""

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field

import django
import flask
from django.conf import settings
from django.http import HttpResponse, JsonResponse
from django.test import RequestFactory
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient
from pydantic import BaseModel

from hookonce import IdempotentRoute, current_operation, idempotent

DEADLINE = 30


@dataclass
class Till:
    """Counts payments; `then` is what follows each: a status to answer with, an exception, or a wait."""

    paid: list = field(default_factory=list)
    then: list = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def pay(self, amount):
        """Return the status and what was paid."""
        with self.lock:
            self.paid.append((amount, current_operation().idempotency_key))
            number, then = len(self.paid), self.then.pop(0) if self.then else 201
        if isinstance(then, threading.Event):
            assert then.wait(DEADLINE)
            then = 201
        if isinstance(then, Exception):
            raise then
        return then, {"payment": number, "amount": amount, "attempt": current_operation().attempt}


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def is_replayed(self):
        return self.headers.get("idempotency-replayed") == "true"


class InFlask:
    def __init__(self, till, **options):
        self._app = flask.Flask("shop")

        @self._app.post("/payments")
        @idempotent("pay", scope=lambda request: request.headers["Tenant"], **options)
        def pay():
            status, paid = till.pay(flask.request.get_json()["amount"])
            return flask.jsonify(paid), status, {"Location": f"/payments/{paid['payment']}"}

    def post(self, body, key="one", tenant="a", **headers):
        given = {"Idempotency-Key": key} if key is not None else {}
        response = self._app.test_client().post(
            "/payments",
            data=body,
            content_type="application/json",
            headers={"Tenant": tenant, **given, **headers},
        )
        return answer_of(response.status_code, response.headers.items(), response.data)


class InAsyncFlask(InFlask):
    def __init__(self, till, **options):
        self._app = flask.Flask("shop")

        @self._app.post("/payments")
        @idempotent("pay", scope=lambda request: request.headers["Tenant"], **options)
        async def pay():
            status, paid = till.pay(flask.request.get_json()["amount"])
            return flask.jsonify(paid), status, {"Location": f"/payments/{paid['payment']}"}


class InDjango:
    def __init__(self, till, **options):
        configure_django()

        @idempotent("pay", scope=lambda request: request.headers["Tenant"], **options)
        def pay(request):
            status, paid = till.pay(json.loads(request.body)["amount"])
            return JsonResponse(paid, status=status, headers={"Location": f"/payments/{paid['payment']}"})

        self._view = pay

    def post(self, body, key="one", tenant="a", **headers):
        given = {"Idempotency-Key": key} if key is not None else {}
        request = RequestFactory().post(
            "/payments", body, "application/json", headers={"Tenant": tenant, **given, **headers}
        )
        response = self._view(request)
        assert isinstance(response, HttpResponse)
        return answer_of(response.status_code, response.items(), response.content)


class Payment(BaseModel):
    amount: int


class Paid(BaseModel):
    payment: int
    amount: int
    attempt: int


class InFastAPI:
    is_async = False

    def __init__(self, till, **options):
        app, router = FastAPI(), APIRouter(route_class=IdempotentRoute)
        once = idempotent("pay", scope=lambda request: request.headers["Tenant"], **options)

        def pay(payment: Payment):
            status, paid = till.pay(payment.amount)
            headers = {"Location": f"/payments/{paid['payment']}"}
            return JSONResponse(paid, status, headers)

        async def pay_async(payment: Payment, request: Request):
            assert request.method == "POST"
            return pay(payment)

        router.post("/payments", status_code=201)(once(pay_async if self.is_async else pay))
        app.include_router(router)
        self._app = app

    def post(self, body, key="one", tenant="a", **headers):
        given = {"Idempotency-Key": key} if key is not None else {}
        sent = {"Tenant": tenant, "Content-Type": "application/json", **given, **headers}
        response = TestClient(self._app).post("/payments", content=body, headers=sent)
        return answer_of(response.status_code, response.headers.items(), response.content)


class InAsyncFastAPI(InFastAPI):
    is_async = True


APPLICATIONS = [InFlask, InAsyncFlask, InDjango, InFastAPI, InAsyncFastAPI]


def answer_of(status, headers, body):
    return Answer(status, {name.lower(): value for name, value in headers}, body)


def configure_django():
    """Set Django up, once per process; it has a database only where `django_database` gives it one."""
    if not settings.configured:
        settings.configure(
            ALLOWED_HOSTS=["*"], SECRET_KEY="of the tests", USE_TZ=True, DATABASES={"default": {}}
        )
        django.setup()


@contextmanager
def django_database(**parameters):
    """Let Django's default database be this one."""
    from django.db import connections  # noqa: PLC0415  it reads the settings

    configure_django()
    before = connections.settings["default"]
    changed = connections.configure_settings({"default": parameters})["default"]
    connections.settings["default"] = changed
    connections["default"] = connections.create_connection("default")
    try:
        yield
    finally:
        connections["default"].close()
        connections.settings["default"] = before
        del connections["default"]
