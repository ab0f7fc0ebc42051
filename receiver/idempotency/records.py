"""Records: what is kept of an operation under its key, and what a request may do that meets one.

`verdict` is the state machine, said once. Each store puts the same rule into the condition of one write, since
only the store can decide between two who come at once; `tests/idempotency/` holds every store against it.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, StrEnum, auto
from typing import Protocol
from uuid import UUID

from hookonce.receiver.ledger.runs import claimed

MAX_KEY = 255
"""Characters of a key."""
_MAX_SCOPE = 500
KEY_FORM = rf"[!-~]{{1,{MAX_KEY}}}"
"""A key as a regular expression: visible ASCII characters."""
_KEY = re.compile(KEY_FORM)


class State(StrEnum):
    """The state of an operation; expired is no state of its own, but the end of each."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED_FINAL = "failed_final"
    FAILED_RETRYABLE = "failed_retryable"


class KeyReused(Exception):  # noqa: N818  what the client did
    """The key belongs to another request."""


class InProgress(Exception):  # noqa: N818  a state of the operation
    """The same request is under way, or its process died and its lease has not run out."""

    def __init__(self, lease_left: timedelta = timedelta(0)) -> None:
        super().__init__("the operation is in progress")
        self.lease_left = lease_left


class LeaseLost(claimed.LeaseLost):
    """Somebody else has this operation now, or nobody: what can be undone of the work must be."""


class StoreUnavailable(Exception):  # noqa: N818  a state of the world
    """The store did not answer, or not in time: nothing may be done, for nobody knows whether it was."""


@dataclass(frozen=True, slots=True)
class Key:
    """A client's key, and whose it is. Two scopes never share a record. Raises: ValueError."""

    scope: str
    key: str

    def __post_init__(self) -> None:
        if not _KEY.fullmatch(self.key):
            raise ValueError(f"an idempotency key has 1 to {MAX_KEY} visible ASCII characters")

    @property
    def digest(self) -> str:
        """The name of the record in Redis and DynamoDB, which may stand for a key in a log (SHA-256, hex)."""
        return hashlib.sha256(json.dumps([self.scope, self.key]).encode()).hexdigest()


def scope_of(*parts: str) -> str:
    """Join what a key is scoped by, such as operation, tenant and actor; no part can pretend to be two."""
    text = json.dumps(parts, separators=(",", ":"))
    return text if len(text) <= _MAX_SCOPE else "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a claim keeps others away (`lease`), and how long a record is kept (`retention`).

    The lease must be longer than the work takes: when it has run out, another request may do the work again.
    The retention begins anew when the work has ended. Raises: ValueError.
    """

    lease: timedelta = timedelta(minutes=1)
    retention: timedelta = timedelta(hours=24)

    def __post_init__(self) -> None:
        if not timedelta(0) < self.lease <= self.retention:
            raise ValueError(
                f"a lease of {self.lease} with a retention of {self.retention}: expected a lease that is "
                "longer than nothing and no longer than the retention"
            )


@dataclass(frozen=True, slots=True)
class Result:
    """An answer as it was given. Without `is_kept` its body was too large for the store, and is empty here."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_kept: bool = True


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to do the work of a key, and to store its result.

    `attempt` counts from 1. `is_uncertain`: an earlier attempt was cut off, and may have had its effect.
    """

    key: Key
    fingerprint: bytes
    owner: UUID
    terms: Terms
    attempt: int = 1
    is_uncertain: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """The record that a store holds under a key, with spans by the store's own clock; both may be negative."""

    fingerprint: bytes
    state: State
    owner: UUID
    attempt: int
    is_uncertain: bool
    lease_left: timedelta
    kept_for: timedelta
    result: Result | None = None

    @property
    def is_running(self) -> bool:
        """Whether somebody has a claim that others must respect."""
        return self.state == State.IN_PROGRESS and self.lease_left > timedelta(0)

    @property
    def is_expired(self) -> bool:
        """Whether the record is as good as gone. A claim that holds is not: no lease outlasts its retention."""
        return self.kept_for <= timedelta(0)


class Verdict(Enum):
    """The verdict on a request."""

    CLAIM = auto()
    TAKE_OVER = auto()
    RETRY = auto()
    WAIT = auto()
    REPLAY = auto()
    CONFLICT = auto()


MAY_CLAIM = (Verdict.CLAIM, Verdict.TAKE_OVER, Verdict.RETRY)


def verdict(record: Record | None, fingerprint: bytes) -> Verdict:
    """Return what a request with this fingerprint (SHA-256) may do where this record is."""
    if record is None or record.is_expired:
        return Verdict.CLAIM
    if record.fingerprint != fingerprint:
        return Verdict.CONFLICT
    if record.state == State.IN_PROGRESS:
        return Verdict.WAIT if record.is_running else Verdict.TAKE_OVER
    return Verdict.RETRY if record.state == State.FAILED_RETRYABLE else Verdict.REPLAY


class Store(Protocol):
    """A place for records. Every method raises `StoreUnavailable`; what it was asked may then have happened."""

    loses: str
    """What this store may lose of what it has confirmed, in words; empty if nothing."""
    max_result: int
    """Bytes of a result's headers and body."""

    def claim(self, wanted: Claim) -> Claim | Record | None:
        """Claim a key by one conditional write, if `verdict` lets it.

        Return the claim as it was granted; else the record that forbids it, or None if it has gone since.
        Asked again with the same owner it gives the same claim, so that a lost reply costs nothing.
        """
        ...

    def complete(self, claim: Claim, state: State, result: Result | None) -> None:
        """End a claim, unless somebody else has it. Raises: `LeaseLost`."""
        ...

    def release(self, claim: Claim) -> None:
        """Forget a claim under which nothing was done; does nothing if somebody else has it."""
        ...

    def find(self, key: Key) -> Record | None:
        """Return the record, even if it has expired and is still there."""
        ...
