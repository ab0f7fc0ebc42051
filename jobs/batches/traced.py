"""Batches as spans, each linked to the deliveries that brought its events. Imported only where traces are wanted."""

from opentelemetry import trace
from opentelemetry.trace import Link, NonRecordingSpan, SpanKind, StatusCode

from hookonce.jobs.batches.batch_attempt import BatchExecutor
from hookonce.jobs.handlers import Handler
from hookonce.receiver.ledger.runs.batches import ClaimedBatch
from hookonce.receiver.ledger.states import RunStatus
from hookonce.receiver.monitoring.otel import parent_of, tracer

MAX_LINKS = 128
"""As many as OpenTelemetry keeps of a span, where nothing else is configured."""


class TracedBatches(BatchExecutor):
    """An executor whose batches are spans, in the trace of the delivery that came first."""

    def attempt_batch(self, batch: ClaimedBatch, handler: Handler) -> None:
        """Have a handler take a batch, as `BatchExecutor` does."""
        traces = dict.fromkeys(run.event.traceparent for run in batch.runs if run.event.traceparent)
        parents = [parent for parent in map(parent_of, traces) if parent is not None]
        first, *others = parents or [trace.INVALID_SPAN_CONTEXT]
        with tracer().start_as_current_span(
            f"batch {batch.handler}",
            context=trace.set_span_in_context(NonRecordingSpan(first)),
            kind=SpanKind.CONSUMER,
            links=[Link(other) for other in others[:MAX_LINKS]],
            attributes={"hookonce.handler": batch.handler, "hookonce.events": len(batch.runs)},
            record_exception=False,
        ):
            super().attempt_batch(batch, handler)

    def _report_batch(
        self, batch: ClaimedBatch, status: RunStatus, events: int, error: BaseException | None = None
    ) -> None:
        span = trace.get_current_span()
        span.set_attribute("hookonce.status", status)
        if error is not None:
            span.set_status(StatusCode.ERROR)
        super()._report_batch(batch, status, events, error)
