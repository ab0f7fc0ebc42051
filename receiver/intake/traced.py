"""Deliveries as spans: imported only where traces are wanted."""

from opentelemetry import trace
from opentelemetry.trace import Link, Span, SpanKind

from hookonce.providers import Delivery, Rejected
from hookonce.receiver.intake.pipeline import Intake, IntakeResult
from hookonce.receiver.ledger.database.connections import LedgerUnavailable
from hookonce.receiver.monitoring.otel import TRACEPARENT, W3C, parent_of, tracer
from hookonce.receiver.outbound.key_fetcher import KeyUnavailable
from hookonce.receiver.source import Source


class TracedIntake(Intake):
    """An intake whose deliveries are spans; the events they bring keep the span they came with."""

    def take(self, source: Source, delivery: Delivery) -> IntakeResult:
        """Take one delivery in, as `Intake` does."""
        theirs = parent_of(delivery.headers.get(TRACEPARENT))
        with tracer().start_as_current_span(
            f"delivery {source.name}",
            context=trace.set_span_in_context(trace.INVALID_SPAN),
            kind=SpanKind.SERVER,
            links=[Link(theirs)] if theirs else (),
            attributes={"hookonce.source": source.name, "hookonce.provider": source.provider.name},
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                result = super().take(source, delivery)
            except Rejected as error:
                span.set_attribute("hookonce.outcome", error.reason)
                raise
            except (LedgerUnavailable, KeyUnavailable):
                span.set_attribute("hookonce.outcome", "unavailable")
                span.set_status(trace.StatusCode.ERROR)
                raise
            _describe(span, result)
            return result

    def trace(self) -> str | None:
        """Return the `traceparent` of the delivery under way."""
        carrier: dict[str, str] = {}
        W3C.inject(carrier)
        return carrier.get(TRACEPARENT)


def _describe(span: Span, result: IntakeResult) -> None:
    fresh = "handshake" if result.reply is not None else "accepted"
    span.set_attribute("hookonce.outcome", "duplicate" if result.is_duplicate else fresh)
    span.set_attribute("hookonce.events", len(result.events))
