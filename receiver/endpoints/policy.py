"""The policy towards a client: how its key is read, and each refusal, in one of two dialects.

The usual dialect answers 202 while the operation is in progress, so that a client that only knows HTTP comes back; the
IETF's draft (draft-ietf-httpapi-idempotency-key-header) wants 409 then, and 422 for a key of another request.
"""

import math
import re
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from hookonce.receiver.durations import parse_duration
from hookonce.receiver.idempotency.records import KEY_FORM, MAX_KEY, Result, State
from hookonce.receiver.web import problem_details

Dialect = Literal["hookonce", "ietf"]
HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
HEADER_FORM = rf'("([!#-\[\]-~]|\\["\\]){{1,{MAX_KEY // 2 - 1}}}"|[!#-+\--~][!-+\--~]{{0,{MAX_KEY - 1}}})'
"""A key in a header: a comma only in quotes, since a header that is sent twice is joined by one."""
_KEY = re.compile(KEY_FORM)
_QUOTED_KEY = re.compile(r'"((?:[^"\\]|\\["\\])+)"')
_MAX_RETRY_AFTER = 5
_MAX_WAIT = timedelta(seconds=30)
_LEFT_OUT = {
    *("connection", "content-length", "date", "keep-alive", "server", "set-cookie", "transfer-encoding"),
    *("idempotency-replayed", "upgrade"),
}
"""Headers that belong to one answer and not to the result, in lower case; a cookie is for who was there then."""


RETRYABLE = {401, 403, 408, 425, 429}
"""Refusals that say nothing about the request itself: another try may succeed."""
STRANGER = {401, 403}
"""Refusals that say of the client that the key is not its own."""


class BadKey(ValueError):  # noqa: N818  what the client sent
    """The header holds no key."""


def read_key(header: str) -> str:
    """Return the key, whether it is written as a quoted string or bare. Raises: `BadKey`.

    Servers join a header that was sent twice by a comma, so a bare key has none.
    """
    quoted = _QUOTED_KEY.fullmatch(header)
    if quoted is None and "," in header:
        raise BadKey("expected one key, in quotes if it holds a comma")
    if not _KEY.fullmatch(header):
        raise BadKey(f"expected 1 to {MAX_KEY} visible ASCII characters")
    return re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else header


@dataclass(frozen=True, slots=True)
class Policy:
    """How clients are answered: `in_progress` is 202 or 409, given after `wait` at the latest."""

    in_progress: int = 202
    wait: timedelta = timedelta(0)
    dialect: Dialect = "hookonce"

    @classmethod
    def read(cls, in_progress: str, dialect: Dialect = "hookonce") -> "Policy":
        """Read "202", "409" or "wait 2s"; the other dialect has 409 in place of 202. Raises: ValueError."""
        if dialect not in {"hookonce", "ietf"}:
            raise ValueError(f"dialect {dialect!r} is not known; expected 'hookonce' or 'ietf'")
        usual = 409 if dialect == "ietf" else 202
        if in_progress in {"202", "409"}:
            if dialect == "ietf" and in_progress == "202":
                raise ValueError(
                    "the dialect 'ietf' answers 409 while in progress; expected '409' or 'wait 2s'"
                )
            return cls(int(in_progress), dialect=dialect)
        word, _, span = in_progress.partition(" ")
        if word != "wait":
            raise ValueError(f"in_progress {in_progress!r} is not known; expected '202', '409' or 'wait 2s'")
        wait = parse_duration(span)
        if not timedelta(0) < wait <= _MAX_WAIT:
            raise ValueError(f"in_progress {in_progress!r}: expected a wait of up to 30s")
        return cls(usual, wait, dialect)

    def under_way(self, lease_left: timedelta = timedelta(0)) -> Result:
        """Tell that the same request is in progress."""
        seconds = str(min(max(math.ceil(lease_left.total_seconds()), 1), _MAX_RETRY_AFTER))
        if self.in_progress == 409:  # noqa: PLR2004  a status
            detail = "the same request is in progress; send it again later, with the same key"
            return refusal(409, "in_progress", detail, seconds)
        headers = {"Content-Type": "application/json", "Retry-After": seconds}
        return Result(202, headers, b'{"status": "in_progress"}')

    def reused(self) -> Result:
        """Tell that the key belongs to another request."""
        detail = (
            f"this {HEADER} belongs to another request; choose a new one for what is not the same request"
        )
        return refusal(422 if self.dialect == "ietf" else 409, "key_reused", detail)


def no_key(detail: str = "") -> Result:
    """Tell that a key is missing, or is none."""
    text = f"the header {HEADER}: {detail}" if detail else f"the header {HEADER} is missing"
    return refusal(
        400, "bad_key" if detail else "key_missing", f"{text}; send a new UUID for each new request"
    )


def not_kept() -> Result:
    """Tell that the request was carried out and its answer was too large to keep."""
    return refusal(410, "answer_not_kept", "the request was carried out; its answer was too large to be kept")


def unavailable() -> Result:
    """Tell that nothing was done, since nobody knows whether it was before."""
    detail = "the record of idempotency keys can't be reached; send the request again, with the same key"
    return refusal(503, "keys_unavailable", detail, problem_details.RETRY_AFTER)


def replayed(result: Result) -> Result:
    """Return a stored result as it is given again."""
    answer = result if result.is_kept else not_kept()
    return replace(answer, headers={**answer.headers, REPLAYED: "true"})


def storable(result: Result) -> Result:
    """Return a result without the headers that belong to one answer only."""
    kept = {name: value for name, value in result.headers.items() if name.lower() not in _LEFT_OUT}
    return replace(result, headers=kept)


def state_of(status: int) -> State:
    """Return what an answer with this status leaves its operation in."""
    if status < 400:  # noqa: PLR2004  where refusals begin
        return State.COMPLETED
    return State.FAILED_RETRYABLE if status in RETRYABLE or status >= 500 else State.FAILED_FINAL  # noqa: PLR2004


def refusal(status: int, code: str, detail: str, retry_after: str = "") -> Result:
    """Make problem details of a refusal."""
    headers = {"Content-Type": problem_details.CONTENT_TYPE} | (
        {"Retry-After": retry_after} if retry_after else {}
    )
    return Result(status, headers, problem_details.document(status, code, detail=detail))
