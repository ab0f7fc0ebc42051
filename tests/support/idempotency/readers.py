"""Shops whose request was read before the decorated endpoint is called: by a hook, a middleware or a dependency."""

import uuid

import flask
import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.testclient import TestClient

from hookonce import IdempotentRoute, idempotent
from tests.support.idempotency.applications import answer_of, configure_django

JSON, PLAIN, URLENCODED, MULTIPART = (
    "application/json",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
)
KINDS = [JSON, PLAIN, URLENCODED, MULTIPART, "file"]


def body_of(kind, amount):
    """Return the body and its Content-Type; a form with files has another boundary each time."""
    if kind == JSON:
        return f'{{"amount": {amount}}}'.encode(), kind
    if kind in {PLAIN, URLENCODED}:
        return f"amount={amount}&currency=EUR".encode(), kind
    boundary = uuid.uuid4().hex
    if kind == "no fields":
        return f"--{boundary}--\r\n".encode(), f"{MULTIPART}; boundary={boundary}"
    of_file = '; filename="order.txt"\r\nContent-Type: text/plain' if kind == "file" else ""
    part = f'--{boundary}\r\nContent-Disposition: form-data; name="amount"{of_file}\r\n\r\n{amount}\r\n'
    return f"{part}--{boundary}--\r\n".encode(), f"{MULTIPART}; boundary={boundary}"


class ReadInFlask:
    READERS = ("nobody", "form", "files", "body", "json", "start", "stream", "forgotten")

    def __init__(self, store, reader):
        self._app, self.done = flask.Flask("shop"), []
        self._app.before_request(getattr(self, reader))
        self._app.post("/")(idempotent("read", scope=None, store=store)(self.work))

    def work(self):
        self.done.append(1)
        return "done", 201

    def nobody(self):
        pass

    def form(self):
        assert flask.request.form is not None

    def files(self):
        for each in flask.request.files.values():
            each.read()

    def body(self):
        flask.request.get_data()

    def json(self):
        flask.request.get_json(silent=True)

    def start(self):
        flask.request.stream.read(4)

    def stream(self):
        flask.request.stream.read()

    def forgotten(self):
        flask.request.get_data(cache=False)

    def post(self, body, kind):
        response = self._app.test_client().post(
            "/", data=body, content_type=kind, headers={"Idempotency-Key": "one"}
        )
        return answer_of(response.status_code, response.headers.items(), response.data)


class ReadInDjango:
    READERS = ("nobody", "form", "files", "body", "start", "stream")

    def __init__(self, store, reader):
        configure_django()
        self.done = []
        self._reader = getattr(self, reader)
        self._view = idempotent("read", scope=None, store=store)(self.work)

    def work(self, _request):
        self.done.append(1)
        return HttpResponse("done", status=201)

    def nobody(self, _request):
        pass

    def form(self, request):
        assert request.POST is not None

    def files(self, request):
        for each in request.FILES.values():
            each.read()

    def body(self, request):
        assert request.body

    def start(self, request):
        request.read(4)

    def stream(self, request):
        request.read()

    def post(self, body, kind):
        request = RequestFactory().generic("POST", "/", body, kind, headers={"Idempotency-Key": "one"})
        self._reader(request)
        try:
            response = self._view(request)
        except RuntimeError:
            response = HttpResponse(status=500)
        return answer_of(response.status_code, response.items(), response.content)


class ReadInFastAPI:
    READERS = ("nobody", "form", "body", "stream", "start", "form_in_middleware", "body_in_middleware")

    def __init__(self, store, reader):
        pytest.importorskip("python_multipart")  # by which Starlette reads forms
        self.done = []
        self._app, router = FastAPI(), APIRouter(route_class=IdempotentRoute)
        of_middleware = reader.endswith("_in_middleware")

        async def depend(request: Request):
            await getattr(self, reader)(request)

        async def work():
            self.done.append(1)
            return "done"

        once = idempotent("read", scope=None, store=store)(work)
        dependencies = [] if of_middleware else [Depends(depend)]
        router.post("/", status_code=201, dependencies=dependencies)(once)
        self._app.include_router(router)
        if of_middleware:
            self._app.middleware("http")(self.looking(reader.removesuffix("_in_middleware")))

    def looking(self, reader):
        async def look(request, call_next):
            await getattr(self, reader)(request)
            return await call_next(request)

        return look

    async def nobody(self, _request):
        pass

    async def form(self, request):
        async with request.form():
            pass

    async def body(self, request):
        await request.body()

    async def stream(self, request):
        async for _ in request.stream():
            pass

    async def start(self, request):
        async for _ in request.stream():
            break

    def post(self, body, kind):
        headers = {"Idempotency-Key": "one", "Content-Type": kind}
        with TestClient(self._app, raise_server_exceptions=False) as client:
            response = client.post("/", content=body, headers=headers)
        return answer_of(response.status_code, response.headers.items(), response.content)


SHOPS = [ReadInFlask, ReadInDjango, ReadInFastAPI]
LOSES = {"start", "stream", "forgotten", "form_in_middleware"}
"""Readers after whom a body may be gone; a framework that keeps it all the same is welcome to."""
