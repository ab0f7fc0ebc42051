"""Attempts as spans, each in the trace of the delivery that brought its event. Imported only where traces are wanted.

Spans that a handler makes are their children. A span ends when its attempt's end is durable. Calls of other services
that it traces (spans of clients) are kept with the attempt's lines, so that its page shows where the time went.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanKind, StatusCode

from hookonce.jobs.attempts.ports import Listener
from hookonce.receiver.ledger.runs.claimed import ClaimedRun, RunKey
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.monitoring import log_capture
from hookonce.receiver.monitoring.otel import parent_of, tracer

MAX_LINKS = 128
"""As many as OpenTelemetry keeps of a span, where nothing else is configured."""
_WHOM = ("server.address", "net.peer.name", "db.system.name", "db.system", "rpc.service", "messaging.system")
"""Attributes that say whom a call is of, the first one first."""


class Calls(SpanProcessor):
    """Keeps the calls of other services that handlers make: their names and hosts, never their URLs or statements."""

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a call, in the context of the attempt that made it."""
        if span.kind is not SpanKind.CLIENT or span.start_time is None or span.end_time is None:
            return
        said = span.attributes or {}
        whom = next((str(said[name]) for name in _WHOM if name in said), "")
        log_capture.note_call(
            f"{span.name} {whom}".strip(),
            (span.end_time - span.start_time) / 1e9,
            has_failed=span.status.status_code is StatusCode.ERROR,
        )


@cache
def hear_calls() -> None:
    """Have the calls be heard that are traced in this process."""
    tracer()
    provider = trace.get_tracer_provider()
    if isinstance(provider, TracerProvider):
        provider.add_span_processor(Calls())


class Traces(Listener):
    """Makes the spans of one process."""

    def __init__(self) -> None:
        self._spans: dict[RunKey, Span] = {}

    def attempting(self, runs: Sequence[ClaimedRun]) -> AbstractContextManager[object]:
        """Have the attempt's span be the current one."""
        return self._attempting(runs[0]) if len(runs) == 1 else _attempting_batch(runs)

    @contextmanager
    def _attempting(self, run: ClaimedRun) -> Iterator[None]:
        parent = parent_of(run.event.traceparent)
        span = self._spans[run.key] = tracer().start_span(
            f"run {run.handler}",
            context=trace.set_span_in_context(NonRecordingSpan(parent) if parent else trace.INVALID_SPAN),
            kind=SpanKind.CONSUMER,
            attributes={
                "hookonce.event": run.event.id,
                "hookonce.source": run.event.source,
                "hookonce.type": run.event.type,
                "hookonce.handler": run.handler,
                "hookonce.attempt": run.attempt,
            },
        )
        try:
            with trace.use_span(span, record_exception=False):
                yield
        except BaseException:
            self.over(run)
            raise

    def ended(self, run: ClaimedRun, ending: AttemptResult) -> None:
        """Say in the span how its attempt ended."""
        if (span := self._spans.get(run.key)) is not None:
            span.set_attribute("hookonce.status", ending.status)
            if ending.error is not None:
                span.set_status(StatusCode.ERROR)

    def over(self, run: ClaimedRun) -> None:
        """End the span of an attempt."""
        if (span := self._spans.pop(run.key, None)) is not None:
            span.end()

    def ended_batch(self, status: RunStatus, *, has_failed: bool) -> None:
        """Say in the span what became of the batch."""
        span = trace.get_current_span()
        span.set_attribute("hookonce.status", status)
        if has_failed:
            span.set_status(StatusCode.ERROR)


def _attempting_batch(runs: Sequence[ClaimedRun]) -> AbstractContextManager[object]:
    """Have one span for a batch: in the trace of the delivery that came first, with links to all."""
    traces = dict.fromkeys(run.event.traceparent for run in runs if run.event.traceparent)
    parents = [parent for parent in map(parent_of, traces) if parent is not None]
    first, *others = parents or [trace.INVALID_SPAN_CONTEXT]
    return tracer().start_as_current_span(
        f"batch {runs[0].handler}",
        context=trace.set_span_in_context(NonRecordingSpan(first)),
        kind=SpanKind.CONSUMER,
        links=[Link(other) for other in others[:MAX_LINKS]],
        attributes={"hookonce.handler": runs[0].handler, "hookonce.events": len(runs)},
        record_exception=False,
    )
