"""The modern way, to compare with: FastAPI on uvicorn, SQLAlchemy's asyncio, as durable as hookonce's ingest.

One row an event, committed before the answer, under a unique key: a copy is a duplicate. It has no workers, no window
and no group commit. It runs in an environment of its own (`requirements.txt` beside it) and imports nothing of ours
but the secret.
"""

import hashlib
import hmac
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from bench.load.deliveries import SECRET

POOL = 16  # connections per process: half of the 32 clients each
_INSERT = text("""
INSERT INTO received (source, event_id, type, account, fingerprint, headers, body)
VALUES ('github', :event_id, :type, :account, :fingerprint, CAST(:headers AS json), :body)
ON CONFLICT (source, event_id) DO NOTHING RETURNING id
""")
engine = create_async_engine(os.environ["PEER_DATABASE_URL"], pool_size=POOL)


@asynccontextmanager
async def _life(_app: FastAPI) -> AsyncIterator[None]:
    yield
    await engine.dispose()


app = FastAPI(lifespan=_life)


@app.post("/hooks/github")
async def receive(request: Request) -> Response:
    """Take a delivery in."""
    body = await request.body()
    wanted = "sha256=" + hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(wanted, request.headers.get("X-Hub-Signature-256", "")):
        return Response(status_code=401)
    row = {
        "event_id": request.headers["X-GitHub-Delivery"],
        "type": request.headers["X-GitHub-Event"],
        "account": str(json.loads(body)["repository"]["id"]),
        "fingerprint": hashlib.sha256(body).digest(),
        "headers": json.dumps(dict(request.headers)),
        "body": body,
    }
    async with engine.begin() as connection:
        is_new = (await connection.execute(_INSERT, row)).first() is not None
    return Response(
        json.dumps({"status": "accepted" if is_new else "duplicate"}), media_type="application/json"
    )
