"""The obvious way, to compare with: verify, SET NX, insert by SQLAlchemy, one RQ job per event.

Same tables, indexes and body, on gunicorn as it comes, with its gevent worker. It is what a good afternoon's work looks
like, and it loses events: one that dies between SET NX and COMMIT is a "duplicate" when it comes again.
`python -m bench.peers.obvious_way` is its worker: RQ's own, which forks for every job.
"""

import hashlib
import hmac
import json
import os
from datetime import UTC, datetime
from functools import cache

import redis
from flask import Flask, Response, request
from rq import Queue, Worker
from sqlalchemy import JSON, Engine, column, create_engine, insert, select, table, text

from bench.load.deliveries import SECRET
from hookonce.receiver.config.server_urls import libpq_url

app = Flask("obvious")
QUEUE = "obvious"
EVENT = ("source", "provider", "event_id", "type", "account", "fingerprint", "id_is_signed")
events = table("events", *map(column, ("id", "received_at", *EVENT)), schema="hookonce")
bodies = table(
    "bodies",
    column("headers", JSON),
    *map(column, ("event", "received_at", "url", "body", "is_element")),
    schema="hookonce",
)
runs = table(
    "runs",
    *map(column, ("event", "handler", "cycle", "status", "attempts", "finished_at")),
    schema="hookonce",
)
POOL = 16  # connections per process: half of the 32 clients each


@cache
def _engine() -> Engine:
    url = libpq_url(os.environ["DATABASE_URL"])
    return create_engine(url.replace("postgresql:", "postgresql+psycopg:", 1), pool_size=POOL)


@cache
def _redis() -> redis.Redis:
    return redis.Redis.from_url(os.environ["REDIS_URL"])


@cache
def _queue() -> Queue:
    return Queue(QUEUE, connection=_redis())


@app.post("/hooks/github")
def receive() -> Response:
    """Take a delivery in."""
    body = request.get_data()
    wanted = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(wanted, request.headers.get("X-Hub-Signature-256", "")):
        return Response(status=401)
    event_id = request.headers["X-GitHub-Delivery"]
    payload = json.loads(body)
    if not _redis().set(f"seen:{event_id}", 1, nx=True, ex=3600):
        return _answer("duplicate")
    with _engine().begin() as connection:
        row = {
            "source": "github",
            "provider": "github",
            "event_id": event_id,
            "type": request.headers["X-GitHub-Event"],
            "account": str(payload["repository"]["id"]),
            "fingerprint": hashlib.sha256(body).digest(),
            "id_is_signed": False,
        }
        number, at = connection.execute(
            insert(events).returning(events.c.id, events.c.received_at), row
        ).one()
        kept = {"event": number, "received_at": at, "url": request.path, "headers": dict(request.headers)}
        connection.execute(insert(bodies), kept | {"body": body, "is_element": False})
    _queue().enqueue("bench.peers.obvious_way.handle", number, result_ttl=0)
    return _answer("accepted")


def handle(number: int) -> None:
    """Do the job: read the event, make one write, mark it done."""
    with _engine().begin() as connection:
        connection.execute(select(bodies.c.body).where(bodies.c.event == number)).scalar_one()
        connection.execute(text("INSERT INTO effects (event) VALUES (:event)"), {"event": number})
        done = {"event": number, "handler": "write", "cycle": 1, "status": "done", "attempts": 1}
        connection.execute(insert(runs), done | {"finished_at": datetime.now(UTC)})


def _answer(status: str) -> Response:
    return Response(json.dumps({"status": status}), content_type="application/json")


if __name__ == "__main__":
    Worker([QUEUE], connection=_redis()).work(logging_level="ERROR")
