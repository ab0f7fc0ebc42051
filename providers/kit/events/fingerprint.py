"""The fingerprint that deliveries of one event share when the sender has no id for it, or gives it a new one.

Some senders change a counter inside the body at each attempt (Stripe's `pending_webhooks`); such places are
`volatile` in the provider's declarations and left out.
"""

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit.reading import bodies, json_paths


def fingerprint(body: bytes, volatile: Sequence[str] = ()) -> bytes:
    """SHA-256 (32 bytes) of `body`, the places `volatile` (JSON paths) left out.

    Without `volatile` it is the digest of the raw bytes. With it, and if the body is JSON, the digest is of a
    canonical form: keys sorted, no spaces, ASCII. A body that is not JSON has the digest of its bytes.
    """
    return _digest(body, volatile, lambda: bodies.parse_json(bodies.text_of(body)))


def delivery_fingerprint(delivery: Delivery, volatile: Sequence[str] = ()) -> bytes:
    """Return the `fingerprint` of a delivery's body, which is parsed for it only if nobody has read it yet."""
    if not volatile:
        return sha256(delivery.body).digest()
    return bodies.read_once(
        delivery,
        f"fingerprint without {' '.join(volatile)}",
        lambda body: _digest(body, volatile, lambda: bodies.json_body(delivery)),
    )


def _digest(body: bytes, volatile: Sequence[str], read: Callable[[], Any]) -> bytes:
    if not volatile:
        return sha256(body).digest()
    try:
        data = read()
        for steps in _steps(tuple(volatile)):
            data = json_paths.without(data, steps)
        return sha256(canonical(data)).digest()
    except (Rejected, RecursionError):
        return sha256(body).digest()


def canonical(data: object) -> bytes:
    """One spelling of a JSON value: sorted keys, no spaces, ASCII (lone surrogates escaped).

    Raises: RecursionError for a value nested beyond Python's limit.
    """
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode("ascii")


@lru_cache(maxsize=256)
def _steps(volatile: tuple[str, ...]) -> tuple[tuple[json_paths.Step, ...], ...]:
    return tuple(json_paths.parse(path) for path in volatile)
