"""Assertions about an event; each says what the ledger knows of it."""

from dataclasses import replace
from typing import Final

from hookonce.receiver.ledger.queries.event_details import Detail, Run
from hookonce.receiver.ledger.states import EventStatus, RunStatus
from hookonce.receiver.ledger.traceback_frames import Raised
from hookonce.testing.inbox import Delivered

__tracebackhide__ = True  # a test that fails shows the user's lines

_SHOWN: Final = 2000
"""Characters of a body that a failed test shows."""


def handled_once(delivered: Delivered, handler: str | None = None) -> Run:
    """Assert that an event was handled, and once: each of its runs, or that of one handler, is done; return the run.

    Retries before it do not matter, and a replay is a second time. Raises: AssertionError.
    """
    found = delivered.detail
    runs = _runs(found, handler)
    for run in runs:
        if run.status != RunStatus.DONE:
            raise AssertionError(f"{run.handler} is {run.status}, not done\n{_story(found)}")
        if run.cycle != 1:
            raise AssertionError(f"{run.handler} was run {run.cycle} times over\n{_story(found)}")
    return runs[0]


def dead_with(delivered: Delivered, error: str | type[BaseException], handler: str | None = None) -> Run:
    """Assert that a run of an event died of an error: a part of its text, or its class; return the run.

    Raises: AssertionError.
    """
    found = delivered.detail
    dead = [run for run in _runs(found, handler) if run.status == RunStatus.DEAD]
    if not dead:
        raise AssertionError(f"nothing is dead\n{_story(found)}")
    for run in dead:
        if _is_of(run.error or "", error):
            return run
    raise AssertionError(f"it is dead, and not with {error!r}\n{_story(found)}")


def ignored(delivered: Delivered) -> None:
    """Assert that no handler takes an event. Raises: AssertionError."""
    found = delivered.detail
    if found.event.status != EventStatus.IGNORED:
        raise AssertionError(f"it is {found.event.status}, not ignored\n{_story(found)}")


def _is_of(text: str, error: str | type[BaseException]) -> bool:
    """Return whether the text that is kept of an error is of this class, or has this in it."""
    if isinstance(error, str):
        return error in text
    return text.replace(":", " ").split(" ", 1)[0] == error.__name__


def _runs(found: Detail, handler: str | None) -> list[Run]:
    runs = [run for run in found.runs if handler is None or run.handler == handler]
    if not runs:
        what = f"handler {handler!r}" if handler else "handler"
        raise AssertionError(f"no {what} has run\n{_story(found)}")
    return runs


def _attempts(number: int) -> str:
    return "1 attempt" if number == 1 else f"{number} attempts"


def _story(found: Detail) -> str:
    """Return what the ledger knows: the event, its runs and what they wait for, the frames of their code, its body."""
    event = found.event
    lines = [f"event {event.event_id} of {event.source}, {event.type}: {event.status}"]
    for run in found.runs:
        why = f", {run.error}" if run.error else ""
        waits = f"; it waits: {run.waits}" if run.waits else ""
        lines += [f"  {run.handler}: {run.status} after {_attempts(run.attempts)}{why}{waits}"]
    if found.failures and (frames := found.failures[-1].frames):
        lines.append(replace(frames, errors=tuple(map(_of_users, frames.errors))).text)
    if found.body is not None:
        lines += [f"body: {found.body.body.decode(errors='replace')[:_SHOWN]}"]
    return "\n".join(lines)


def _of_users(raised: Raised) -> Raised:
    """Leave out the frames of others' code, unless there is no other."""
    return replace(raised, frames=tuple(frame for frame in raised.frames if frame.is_users) or raised.frames)
