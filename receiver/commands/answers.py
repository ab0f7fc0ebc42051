"""The answers that tell a client what became of its command."""

import json
from dataclasses import replace
from typing import Any

from hookonce.receiver.config.commands import REFUSAL, Command
from hookonce.receiver.endpoints import policy
from hookonce.receiver.idempotency.records import Result
from hookonce.receiver.ledger.commands import CommandState, Outcome
from hookonce.receiver.web import problem_details
from hookonce.receiver.web.response import JSON, Response

RETRY_AFTER = "1"
_FAILED = (
    "the command failed for good and was not done; send it again under a new key, when its cause is gone"
)
_TRIED_AGAIN = (
    "the command failed and is tried again by itself; look again later, or ask again with the same key"
)


def final(command: Command, outcome: Outcome) -> Result:
    """Answer with what a command has come to."""
    refusal = _refusal(outcome)
    if refusal is not None:
        return policy.refusal(refusal["status"], refusal["code"], refusal["detail"])
    if outcome.state is CommandState.COMPLETED:
        return Result(command.status, {"Content-Type": JSON}, json.dumps(outcome.result).encode())
    return policy.refusal(422, "failed", _FAILED)


def failed_for_now() -> Result:
    """Answer that the command has failed and is going to be tried again."""
    return policy.refusal(503, "failed_retryable", _TRIED_AGAIN, RETRY_AFTER)


def too_many(retry_after: str) -> Result:
    """Answer a client that asks too often."""
    detail = "too many requests of this client; send it again later, with the same key"
    return policy.refusal(429, problem_details.TOO_MANY, detail, retry_after)


def too_many_keys(retry_after: str) -> Result:
    """Answer a client that has used more new keys than it may."""
    detail = "this client has used all new keys that it may for now; send it again later, with the same key"
    return policy.refusal(429, "too_many_keys", detail, retry_after)


def state(outcome: Outcome) -> Result:
    """Answer with the state of a command, and its result or its refusal."""
    told: dict[str, Any] = {"status": outcome.state}
    refusal = _refusal(outcome)
    if refusal is not None:
        told = {"status": CommandState.FAILED_FINAL, "refusal": refusal}
    elif outcome.state is CommandState.COMPLETED:
        told["result"] = outcome.result
    headers = {"Content-Type": JSON} | ({} if outcome.is_final else {"Retry-After": RETRY_AFTER})
    return Result(200, headers, json.dumps(told).encode())


def located(result: Result, location: str) -> Result:
    """Add where the state of a command can be asked for."""
    return replace(result, headers={**result.headers, "Location": location})


def response(result: Result, *, close: bool = False) -> Response:
    """Return a result as what is sent."""
    more = [(name, value) for name, value in result.headers.items() if name != "Content-Type"]
    always = [("Cache-Control", "no-store"), *([("Connection", "close")] if close else [])]
    return Response(result.status, result.body, result.headers["Content-Type"], (*more, *always))


def _refusal(outcome: Outcome) -> dict[str, Any] | None:
    result = outcome.result
    if outcome.state is CommandState.COMPLETED and isinstance(result, dict) and result.keys() == {REFUSAL}:
        found: dict[str, Any] = result[REFUSAL]
        return found
    return None
