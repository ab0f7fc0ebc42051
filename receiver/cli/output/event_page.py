"""One event on a terminal: what it is, why it failed with the code there, and then all else that is known."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime

import click

from hookonce.receiver.cli.output import tracebacks
from hookonce.receiver.cli.output.colors import paint
from hookonce.receiver.cli.output.event_lines import cut
from hookonce.receiver.cli.output.printing import fitted
from hookonce.receiver.cli.output.tables import cell, clean
from hookonce.receiver.cli.output.times import ago, soon
from hookonce.receiver.cli.output.words import counted
from hookonce.receiver.desk.events import FullEvent
from hookonce.receiver.desk.rows import AttemptLog, Failure, OtherBody, Step, StepStatus, Wait
from hookonce.receiver.ledger.states import RunStatus

_MAX_CAUSES = 3
"""Runs of which the error is shown first."""
_UNFOLDED = 3
"""Failed attempts that are listed one by one, the latest."""
_MAX_SHOWN = 4000
"""Characters of a body that a person is shown; `--raw` gives all of it."""


def lines(found: FullEvent, now: datetime, body: bytes | None = None) -> Iterator[str]:
    """Yield the page, safe for a terminal: with the delivery if its `body` is given, and last why it failed."""
    yield from _head(found)
    yield from _causes(found)
    yield from _facts(found, now)
    yield from _conflicts(found.conflicts, now)
    yield from _delivery(found, body)
    yield from _steps(found.steps, now)
    yield from _runs(found, now)
    yield from _logs(found.logs)
    yield from _failures(found, now)


def _head(event: FullEvent) -> Iterator[str]:
    yield _fact("event", f"{event.id}  {paint(event.status)}{_why(event.waits)}")
    yield _fact(
        "source",
        clean(event.source if event.source == event.provider else f"{event.source} ({event.provider})"),
    )
    yield _fact("type", clean(event.type))
    yield _fact("event id", clean(event.event_id))
    if event.why_not_run:
        yield _fact("not run", clean(event.why_not_run))


def _causes(found: FullEvent) -> Iterator[str]:
    """Yield the newest error of each run that has not succeeded, and the code where it was raised."""
    newest = {failure.handler: failure for failure in found.failures}
    for run in found.runs:
        if run.status == RunStatus.DONE:
            newest.pop(run.handler, None)
    for handler, failure in list(newest.items())[:_MAX_CAUSES]:
        if handler:
            yield "\n" + cut(f"{clean(handler)}: {_first_line(failure.said)}", fg="red", bold=True)
        else:
            yield "\n" + fitted(click.style(clean(failure.error), fg="red"))
        yield from tracebacks.place(failure.frames)
    if newest:
        yield ""


def _facts(event: FullEvent, now: datetime) -> Iterator[str]:
    yield _fact(
        "received", f"{_when(event.received_at, now)}, {_times(event.deliveries, 'delivery', 'deliveries')}"
    )
    if event.occurred_at:
        yield _fact("occurred", _when(event.occurred_at, now))
    if event.account is not None:
        yield _fact("account", clean(event.account))
    if event.due_at:
        yield _fact("due", _when(event.due_at, now))
    if event.repeat_of is not None:
        yield _fact("repeat of", str(event.repeat_of))
    if event.repeats:
        yield _fact("repeated by", ", ".join(map(str, event.repeats)))
    if event.is_test:
        yield _fact("test", "an operator sent it")


def _runs(found: FullEvent, now: datetime) -> Iterator[str]:
    if not found.runs:
        return
    yield "\n" + _heading("runs")
    failed = {(each.handler, each.error) for each in found.failures}
    for run in found.runs:
        said = [_times(run.attempts, "attempt", "attempts")]
        if run.cycle > 1:
            said.append(f"replayed {_times(run.cycle - 1, 'time', 'times')}")
        if run.finished_at:
            said.append(f"ended {ago(run.finished_at, now)}")
        elif run.due_at and run.status == RunStatus.WAITING:
            said.append(f"the next {soon(run.due_at)}")
        line = f"  {clean(run.handler)}  {paint(run.status)}{_why(run.waits)}, {', '.join(said)}"
        yield fitted(line)
        yield from _event_waits(run.awaited, now)
        if run.is_skipped:
            yield f"    skipped: event {run.result['newest']} has a newer version of what it is about"
        elif run.result is not None:
            yield f"    result {clean(json.dumps(run.result, ensure_ascii=False))}"
        if run.unreadable:
            yield f"    {clean(run.unreadable)}"
        if run.error and run.status != RunStatus.DONE and (run.handler, run.error) not in failed:
            yield "    " + click.style(clean(run.error, lines=True).replace("\n", "\n    "), fg="red")


def _event_waits(waits: Sequence[Wait], now: datetime) -> Iterator[str]:
    for wait in waits:
        said = f"{clean(wait.name)}: {clean(wait.source)} {clean(wait.type)}, since {ago(wait.since, now)}"
        if wait.ended_at is None:
            yield fitted(f"    waits for {said}, until {_when(wait.until, now)}")
        else:
            answer = f"event {wait.answer} came" if wait.answer else "none came in time"
            yield fitted(f"    waited for {said}: {answer}, {ago(wait.ended_at, now)}")


def _steps(steps: Sequence[Step], now: datetime) -> Iterator[str]:
    if not steps:
        return
    yield "\n" + _heading("steps")
    for step in steps:
        ended = f", {ago(step.finished_at, now)}" if step.finished_at else ""
        yield f"  {clean(step.handler)}: {clean(step.name)}  {step.status}{ended}"
        yield f"    key {step.key}"
        if gave := step.unreadable or (
            json.dumps(step.result) if StepStatus(step.status) is StepStatus.DONE else step.note
        ):
            yield f"    {clean(gave)}"


def _failures(found: FullEvent, now: datetime) -> Iterator[str]:
    """Yield the failed attempts, and the tracebacks of runs that are not done, each once: most attempts fail alike."""
    failures = [each for each in found.failures if each.handler]
    if not failures:
        return
    yield "\n" + _heading("failed attempts")
    if earlier := failures[:-_UNFOLDED]:
        errors = len({_first_line(each.said) for each in earlier})
        yield f"  {counted(len(earlier), 'earlier attempt')}, {counted(errors, 'error')}; --json lists them"
    for failure in failures[-_UNFOLDED:]:
        yield cut(f"  {_which(failure)}, {ago(failure.failed_at, now)}: {_first_line(failure.said)}")
    done = {run.handler for run in found.runs if run.status == RunStatus.DONE}
    shown: dict[tuple[str, ...], Failure] = {}
    for failure in (each for each in failures if each.handler not in done):
        lines = tuple(tracebacks.lines(failure.frames, failure.unreadable))
        if lines:
            shown[lines] = failure  # the latest of those that failed alike
    for lines, failure in shown.items():
        yield f"\n{_which(failure)}:"
        yield from lines


def _which(failure: Failure) -> str:
    cycle = f", cycle {failure.cycle}" if failure.cycle > 1 else ""
    return clean(f"attempt {failure.attempt} of {failure.handler}{cycle}")


def _logs(logs: Sequence[AttemptLog]) -> Iterator[str]:
    if not logs:
        return
    yield "\n" + _heading("logs")
    for log in logs:
        more = f", {log.left_out} more lines over the limit" if log.left_out else ""
        batch = f", in a batch with event {log.batch}" if log.batch else ""
        yield f"  attempt {log.attempt} of {clean(log.handler)}, cycle {log.cycle}{batch}{more}"
        if log.unreadable:
            yield f"    {clean(log.unreadable)}"
        for line in log.lines:
            took = "" if line.took is None else f", {line.took} ms"
            yield f"    {line.at:>6} ms  {clean(f'{line.level} {line.logger}'.strip())}: {clean(line.text)}{took}"


def _conflicts(conflicts: Sequence[OtherBody], now: datetime) -> Iterator[str]:
    if not conflicts:
        return
    yield "\n" + _heading("other bodies under this id")
    for each in conflicts:
        said = f"{each.bytes} bytes, {_times(each.deliveries, 'delivery', 'deliveries')}"
        yield f"  {each.id}  first {ago(each.first_at, now)}, last {ago(each.last_at, now)}: {said}"


def _delivery(found: FullEvent, body: bytes | None) -> Iterator[str]:
    if found.headers is None:
        yield _fact("body", found.why_no_body or found.unreadable or "is gone")
        return
    if body is None:
        said = found.unreadable or f"{found.bytes} bytes, {len(found.headers)} headers; --body shows them"
        yield _fact("body", said)
        return
    yield "\n" + _heading("delivery")
    yield f"POST {clean(found.url or '')}"
    for name, value in found.headers.items():
        yield f"{clean(name)}: {clean(value)}"
    yield f"\n{_pretty(body)}"


def _fact(name: str, value: str) -> str:
    return fitted(f"{name:<12} {value}", " " * 13)


def _heading(text: str) -> str:
    return click.style(text, bold=True)


def _why(waits: str | None) -> str:
    return f" ({waits})" if waits else ""


def _when(moment: datetime, now: datetime) -> str:
    return f"{ago(moment, now)} ({cell(moment)})"


def _times(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _first_line(error: str | None) -> str:
    return clean((error or "").strip().partition("\n")[0])


def _pretty(body: bytes) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return f"{len(body)} bytes that are not text; --raw writes them"
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    rest = len(text) - _MAX_SHOWN
    return clean(text[:_MAX_SHOWN], lines=True) + (
        f"\n… {rest} characters more; --raw gives all" if rest > 0 else ""
    )
