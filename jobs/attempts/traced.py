"""Runs as spans, each in the trace of the delivery that brought its event. Imported only where traces are wanted."""

from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanKind, StatusCode

from hookonce.jobs.attempts.attempt import Executor, HasNext
from hookonce.jobs.handlers import Handler
from hookonce.receiver.ledger.runs.claimed import ClaimedRun
from hookonce.receiver.ledger.runs.ends import AttemptResult
from hookonce.receiver.monitoring.otel import parent_of, tracer


class TracedExecutor(Executor):
    """An executor whose attempts are spans; spans that a handler makes are their children."""

    def attempt(self, run: ClaimedRun, handler: Handler, has_next: HasNext) -> None:
        """Make one attempt, as `Executor` does."""
        parent = parent_of(run.event.traceparent)
        with tracer().start_as_current_span(
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
            record_exception=False,
        ):
            super().attempt(run, handler, has_next)

    def _report(self, run: ClaimedRun, ending: AttemptResult) -> None:
        span = trace.get_current_span()
        span.set_attribute("hookonce.status", ending.status)
        if ending.error is not None:
            span.set_status(StatusCode.ERROR)
        super()._report(run, ending)
