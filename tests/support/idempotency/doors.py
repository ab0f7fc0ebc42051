"""Shops with a door: `POST /pay` pays once per key, for clients whose token is known; the door is of one kind.

The scope names no client, so that a door that is passed shows at once: a stranger would get the owner's answer.
"""

import json
from contextlib import suppress
from functools import wraps
from typing import Annotated

import flask
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, JsonResponse
from django.test import RequestFactory
from fastapi import APIRouter, Depends, FastAPI, Header, HTTPException, Request, Security
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from fastapi.testclient import TestClient
from pydantic import BaseModel

from hookonce import IdempotentRoute, idempotent
from tests.support.idempotency.applications import answer_of, configure_django

OWNER = {"Authorization": "Bearer owner"}


def is_owner(headers):
    return headers.get("Authorization") == OWNER["Authorization"]


class Door:
    """`paid` are the amounts; `post` asks for a body under the key "one"."""

    def __init__(self, store, paid):
        self.paid = paid
        self.once = idempotent("pay", scope=None, store=store)

    def pay(self, amount):
        self.paid.append(amount)
        return {"payment": len(self.paid)}


class OfFlask(Door):
    def __init__(self, store, paid, kind):
        super().__init__(store, paid)
        self._app = flask.Flask("shop")

        def work():
            return self.pay(flask.request.get_json()["amount"]), 201

        getattr(self, kind)(work)

    def hook(self, work):
        self._app.before_request(refuse_in_flask)
        self._app.post("/pay")(self.once(work))

    def decorator(self, work):
        @wraps(work)
        def guarded():
            refuse_in_flask()
            return once()

        once = self.once(work)
        self._app.post("/pay")(guarded)

    def scope(self, work):
        def whose(_request):
            refuse_in_flask()
            return "owner"

        options = {"scope": whose, "store": self.once.store}
        self._app.post("/pay")(idempotent("pay", **options)(work))

    def post(self, body, headers):
        response = self._app.test_client().post(
            "/pay", json=body, headers={"Idempotency-Key": "one", **headers}
        )
        return answer_of(response.status_code, response.headers.items(), response.data)


class InsideOfFlask(OfFlask):
    """Its view looks itself: a stranger is refused in the middle of an attempt."""

    def abort(self, work):
        def looks():
            refuse_in_flask()
            return work()

        self._app.post("/pay")(self.once(looks))

    def answer(self, work):
        self._app.post("/pay")(
            self.once(lambda: work() if is_owner(flask.request.headers) else ({"no": "entry"}, 401))
        )


def refuse_in_flask():
    if not is_owner(flask.request.headers):
        flask.abort(401)


class OfDjango(Door):
    def __init__(self, store, paid, kind):
        super().__init__(store, paid)
        configure_django()

        def work(request):
            return JsonResponse(self.pay(json.loads(request.body)["amount"]), status=201)

        self._view = getattr(self, kind)(work)

    def middleware(self, work):
        once = self.once(work)
        return lambda request: once(request) if is_owner(request.headers) else HttpResponse(status=401)

    def scope(self, work):
        def whose(request):
            if not is_owner(request.headers):
                raise PermissionDenied
            return "owner"

        return idempotent("pay", scope=whose, store=self.once.store)(work)

    def post(self, body, headers):
        request = RequestFactory().post(
            "/pay", json.dumps(body), "application/json", headers={"Idempotency-Key": "one", **headers}
        )
        response = HttpResponse(status=403)
        with suppress(PermissionDenied):
            response = self._view(request)
        return answer_of(response.status_code, response.items(), response.content)


class InsideOfDjango(OfDjango):
    def denied(self, work):
        def looks(request):
            if not is_owner(request.headers):
                raise PermissionDenied
            return work(request)

        return self.once(looks)

    def answer(self, work):
        return self.once(
            lambda request: work(request) if is_owner(request.headers) else HttpResponse(status=403)
        )


class Payment(BaseModel):
    amount: int


def refuse_in_fastapi(request: Request):
    if not is_owner(request.headers):
        raise HTTPException(401)
    request.state.client = "owner"


async def refuse_later(authorization: Annotated[str, Header()] = ""):
    if authorization != OWNER["Authorization"]:
        raise HTTPException(403)
    yield "owner"


def client_of(found: Annotated[HTTPAuthorizationCredentials, Security(HTTPBearer())]):
    if found.credentials != "owner":
        raise HTTPException(403)
    return found.credentials


class OfFastAPI(Door):
    is_async = True

    def __init__(self, store, paid, kind):
        super().__init__(store, paid)
        self._app = FastAPI()
        self.router = APIRouter(route_class=IdempotentRoute)
        self.included = {}

        def work(payment: Payment):
            return self.pay(payment.amount)

        async def work_async(payment: Payment):
            return self.pay(payment.amount)

        getattr(self, kind)(work_async if self.is_async else work)
        self._app.include_router(self.router, **self.included)

    def route(self, work, **options):
        self.router.post("/pay", status_code=201, **options)(self.once(work))

    def dependency_of_the_route(self, work):
        self.route(work, dependencies=[Depends(refuse_in_fastapi)])

    def dependency_that_yields(self, work):
        self.route(work, dependencies=[Depends(refuse_later)])

    def security_of_the_router(self, work):
        self.router = APIRouter(route_class=IdempotentRoute, dependencies=[Security(client_of)])
        self.route(work)

    def dependency_of_the_inclusion(self, work):
        self.included = {"dependencies": [Depends(refuse_in_fastapi)]}
        self.route(work)

    def dependency_of_the_application(self, work):
        self._app = FastAPI(dependencies=[Depends(refuse_in_fastapi)])
        self.route(work)

    def parameter(self, _work):
        once = idempotent("pay", scope=lambda _, client: client, store=self.once.store)

        @self.router.post("/pay", status_code=201)
        @once
        async def pay(payment: Payment, client: Annotated[str, Depends(client_of)]):
            assert client == "owner"
            return self.pay(payment.amount)

    def state(self, work):
        self.once = idempotent("pay", scope=lambda request: request.state.client, store=self.once.store)
        self.dependency_of_the_route(work)

    def decorator(self, _work):
        def work(payment: Payment, authorization: Annotated[str, Header()] = ""):
            assert authorization
            return self.pay(payment.amount)

        once = self.once(work)

        @wraps(once)
        def guarded(**given):
            if given["authorization"] != OWNER["Authorization"]:
                raise HTTPException(401)
            return once(**given)

        self.router.post("/pay", status_code=201)(guarded)

    def middleware(self, work):
        self.route(work)

        @self._app.middleware("http")
        async def look(request, call_next):
            return await call_next(request) if is_owner(request.headers) else JSONResponse({}, 401)

    def post(self, body, headers):
        with TestClient(self._app) as client:
            response = client.post("/pay", json=body, headers={"Idempotency-Key": "one", **headers})
        return answer_of(response.status_code, response.headers.items(), response.content)


class OfSyncFastAPI(OfFastAPI):
    is_async = False


class InsideOfFastAPI(OfFastAPI):
    def raising(self, work):
        async def looks(request: Request, payment: Payment):
            refuse_in_fastapi(request)
            return await work(payment)

        self.route(looks)


OUTSIDE = [
    *((OfFlask, kind) for kind in ("hook", "decorator", "scope")),
    *((OfDjango, kind) for kind in ("middleware", "scope")),
    *(
        (application, kind)
        for application in (OfFastAPI, OfSyncFastAPI)
        for kind in (
            "dependency_of_the_route",
            "dependency_that_yields",
            "security_of_the_router",
            "dependency_of_the_inclusion",
            "dependency_of_the_application",
            "parameter",
            "state",
            "decorator",
            "middleware",
        )
    ),
]
"""Doors that stand before the decorated function."""
INSIDE = [
    (InsideOfFlask, "abort"),
    (InsideOfFlask, "answer"),
    (InsideOfDjango, "denied"),
    (InsideOfDjango, "answer"),
    (InsideOfFastAPI, "raising"),
]
"""Doors in the decorated function."""
