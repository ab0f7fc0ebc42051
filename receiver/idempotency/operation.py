"""From a key to a claim or an answer, and from the work to the stored result.

A claim is committed before the work begins, so that a second request sees it. The result is stored in the transaction
of the work itself where there is one, else right after it: then a process that dies between the two leaves a claim
that runs out, and the next attempt is told that it `is_uncertain`.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import uuid4

from hookonce.receiver.failpoints import reach
from hookonce.receiver.idempotency.records import (
    MAY_CLAIM,
    Claim,
    InProgress,
    Key,
    KeyReused,
    Record,
    Result,
    State,
    Store,
    StoreUnavailable,
    Terms,
    Verdict,
    verdict,
)

T = TypeVar("T")
_LOOKS = 3
"""How often a key is claimed again whose record has gone, or has become free, in the very moment of looking."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An operation that has ended: its answer, given again."""

    state: State
    result: Result


def begin(store: Store, key: Key, fingerprint: bytes, terms: Terms) -> Claim | Stored:
    """Claim a key for the request with this fingerprint (SHA-256), or give the answer that it had.

    The claim is durable when it is returned, as far as the store is. Raises: `KeyReused`, `InProgress`,
    `StoreUnavailable`.
    """
    wanted = Claim(key, fingerprint, uuid4(), terms)
    reach("operation.asked")
    for _ in range(_LOOKS):
        found = twice(lambda: store.claim(wanted))
        if isinstance(found, Claim):
            reach("operation.claimed")
            return found
        if found is not None and (answer := _answer(found, fingerprint)):
            return answer
    raise InProgress


def _answer(record: Record, fingerprint: bytes) -> Stored | None:
    """Return the stored answer; None if the key may be claimed by now."""
    decided = verdict(record, fingerprint)
    if decided in MAY_CLAIM:
        return None
    if decided is Verdict.CONFLICT:
        raise KeyReused
    if decided is Verdict.WAIT or record.result is None:
        raise InProgress(record.lease_left)
    return Stored(record.state, record.result)


def complete(store: Store, claim: Claim, result: Result, state: State = State.COMPLETED) -> None:
    """Store the result of a claim, after its work. Raises: `LeaseLost`, `StoreUnavailable`."""
    reach("operation.done")
    twice(lambda: store.complete(claim, state, fitting(store, result)))
    reach("operation.completed")


def fail_for_now(store: Store, claim: Claim) -> None:
    """Let the same request be tried again at once; what it was asked for stays with its key. Raises as `complete`."""
    twice(lambda: store.complete(claim, State.FAILED_RETRYABLE, None))


def abandon(store: Store, claim: Claim) -> None:
    """Give a key back under which nothing was done: any request may have it.

    Not if an earlier attempt may have done something: then the same request may be tried again, and no other.
    Raises: `LeaseLost`, `StoreUnavailable`.
    """
    if claim.is_uncertain:
        fail_for_now(store, claim)
    else:
        twice(lambda: store.release(claim))


def fitting(store: Store, result: Result) -> Result:
    """Return a result that the store can take: without its body if that is too large."""
    size = len(result.body) + sum(len(name) + len(value) for name, value in result.headers.items())
    return result if size <= store.max_result else replace(result, headers={}, body=b"", is_kept=False)


def downstream_key(key: Key) -> str:
    """Return a key for calls of others that the work makes: the same on each attempt, and of no other operation."""
    return hashlib.sha256(b"hookonce downstream\n" + key.digest.encode()).hexdigest()[:32]


def twice(ask: Callable[[], T]) -> T:
    """Ask again after a failure: a claim knows its owner, so a reply that was lost does no harm."""
    try:
        return ask()
    except StoreUnavailable:
        return ask()
