"""Attempts as spans, each in the trace of the delivery that brought its event. Imported only where traces are wanted.

Spans that a handler makes are their children. A span ends when its attempt's end is durable.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from opentelemetry import trace
from opentelemetry.trace import Link, NonRecordingSpan, Span, SpanKind, StatusCode

from hookonce.jobs.attempts.listener import Listener
from hookonce.receiver.ledger.runs.claimed import Attempt, ClaimedRun
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.monitoring.otel import parent_of, tracer

MAX_LINKS = 128
"""As many as OpenTelemetry keeps of a span, where nothing else is configured."""


class Traces(Listener):
    """Makes the spans of one process."""

    def __init__(self) -> None:
        self._spans: dict[Attempt, Span] = {}

    @contextmanager
    def attempting(self, run: ClaimedRun) -> Iterator[None]:
        """Have the attempt's span be the current one."""
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

    def attempting_batch(self, runs: Sequence[ClaimedRun]) -> AbstractContextManager[object]:
        """Have the batch's span be the current one: in the trace of the delivery that came first, with links to all."""
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

    def ended_batch(self, status: RunStatus, *, has_failed: bool) -> None:
        """Say in the span what became of the batch."""
        span = trace.get_current_span()
        span.set_attribute("hookonce.status", status)
        if has_failed:
            span.set_status(StatusCode.ERROR)
