"""HTTP requests as GitHub sends them, signed and complete, made before any clock starts.

Every body differs, not only the delivery id: GitHub's id is unsigned, so the ledger also looks at bodies.
"""

import hashlib
import hmac
import json
import time
import uuid

SECRET = "bench-secret-of-some-length"  # noqa: S105  of a server that lives as long as the benchmark
SIZE = 1200  # bytes of a body; GitHub's smaller events have 1 to 7 KB
_NUMBER = "@number@"
_WORDS = "keep the ledger slim and the window short. "


def deliveries(count: int, path: str, *, type: str = "push", random: bool = False) -> list[bytes]:  # noqa: A002  the vocabulary's
    """Make `count` new deliveries to `path`; no two share an id or a body.

    Their ids follow each other, as GitHub's do for minutes (they are made of the time), unless they are to be `random`.
    """
    series = str(uuid.uuid4())[:23]
    before, after = (part.encode() for part in _template().split(_NUMBER))
    head = _head(path, type)
    made = []
    for number in range(count):
        guid = str(uuid.uuid4()).encode() if random else b"%s-%012d" % (series.encode(), number)
        body = before + guid + after
        sha256 = hmac.digest(SECRET.encode(), body, hashlib.sha256).hex().encode()
        made.append(head % (guid, sha256, len(body)) + body)
    return made


def stripe_deliveries(count: int, path: str) -> list[bytes]:
    """Make `count` new deliveries as Stripe sends them, of events that are about nothing but a balance."""
    series, now = uuid.uuid4().hex[:12], int(time.time())
    document = {
        "id": _NUMBER,
        "object": "event",
        "api_version": "2024-06-20",
        "created": now,
        "data": {"object": {"object": "balance", "livemode": False, "note": ""}},
        "livemode": False,
        "pending_webhooks": 1,
        "request": {"id": None, "idempotency_key": None},
        "type": "balance.available",
    }
    document["data"]["object"]["note"] = (_WORDS * 40)[: SIZE - len(json.dumps(document))]  # type: ignore[index]
    before, after = (part.encode() for part in json.dumps(document).split(_NUMBER))
    made = []
    for number in range(count):
        body = before + b"evt_%s%09d" % (series.encode(), number) + after
        mac = hmac.digest(SECRET.encode(), b"%d." % now + body, hashlib.sha256).hex()
        lines = (
            f"POST {path} HTTP/1.1",
            "Host: hooks.example.com",
            "User-Agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)",
            "Accept: */*; q=0.5, application/xml",
            "Cache-Control: no-cache",
            "Content-Type: application/json; charset=utf-8",
            f"Stripe-Signature: t={now},v1={mac}",
            f"Content-Length: {len(body)}",
        )
        made.append(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
    return made


def bare(path: str) -> bytes:
    """Make a request with nothing in it, for what an empty route can do."""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def body() -> str:
    """Return one body, as the ledger would keep it."""
    return _template().replace(_NUMBER, str(uuid.uuid4()))


def _head(path: str, kind: str) -> bytes:
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: hooks.example.com",
        "User-Agent: GitHub-Hookshot/044aadd",
        "Accept: */*",
        "Content-Type: application/json",
        "X-GitHub-Delivery: %s",
        f"X-GitHub-Event: {kind}",
        "X-GitHub-Hook-ID: 292430182",
        "X-GitHub-Hook-Installation-Target-ID: 79929171",
        "X-GitHub-Hook-Installation-Target-Type: repository",
        "X-Hub-Signature-256: sha256=%s",
        "Content-Length: %d",
    )
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def _template() -> str:
    owner = {"login": "octo-org", "id": 5_550_001, "type": "Organization", "site_admin": False}
    document = {
        "ref": "refs/heads/main",
        "before": "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
        "after": _NUMBER,
        "created": False,
        "forced": False,
        "repository": {"id": 79_929_171, "full_name": "octo-org/inbox", "private": True, "owner": owner},
        "pusher": {"name": "mona", "email": "mona@example.com"},
        "sender": {"login": "mona", "id": 583_231, "type": "User"},
        "head_commit": {"message": "", "timestamp": "2026-01-15T12:00:00Z", "modified": ["README.md"]},
    }
    missing = SIZE - len(json.dumps(document).replace(_NUMBER, "0" * 36))
    document["head_commit"]["message"] = (_WORDS * 40)[:missing]
    return json.dumps(document)
