"""A receiver written for speed: Starlette and asyncpg, sixty lines, as durable as hookonce's ingest.

One row an event, committed before the answer, under a unique key: a copy is a duplicate. It has no workers, no window,
no group commit and no limits. It runs in the environment of the peers, and imports nothing of ours but the secret.
"""

import hashlib
import hmac
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bench.load.deliveries import SECRET

POOL = 16  # connections per process: half of the 32 clients each
_KEY = SECRET.encode()
_INSERT = """
INSERT INTO received (source, event_id, type, account, fingerprint, headers, body)
VALUES ('github', $1, $2, $3, $4, $5, $6)
ON CONFLICT (source, event_id) DO NOTHING RETURNING id
"""


@asynccontextmanager
async def _life(application: Starlette) -> AsyncIterator[None]:
    async with asyncpg.create_pool(os.environ["PEER_DATABASE_DSN"], min_size=POOL, max_size=POOL) as pool:
        application.state.pool = pool
        yield


async def receive(request: Request) -> Response:
    """Take a delivery in."""
    body = await request.body()
    headers = request.headers
    wanted = "sha256=" + hmac.digest(_KEY, body, "sha256").hex()
    if not hmac.compare_digest(wanted, headers.get("x-hub-signature-256", "")):
        return Response(status_code=401)
    new = await request.app.state.pool.fetchval(
        _INSERT,
        headers["x-github-delivery"],
        headers["x-github-event"],
        str(json.loads(body)["repository"]["id"]),
        hashlib.sha256(body).digest(),
        json.dumps(dict(headers)),
        body,
    )
    status = "duplicate" if new is None else "accepted"
    return Response(f'{{"status": "{status}"}}', media_type="application/json")


app = Starlette(routes=[Route("/hooks/github", receive, methods=["POST"])], lifespan=_life)
