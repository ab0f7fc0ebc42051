"""OpenTelemetry for deliveries, and what the workers' part shares with it. Imported only where traces are wanted.

A delivery begins a trace of its own: a sender that has one is linked to, and neither decides what we sample nor
makes our spans its own. Names, numbers and verdicts stand in spans; bodies, headers and errors' words do not.
Spans are sent over OTLP/HTTP by a thread that starts with the first span, so after any fork.
"""

import os
from functools import cache
from importlib.metadata import version

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, Span, SpanKind, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from providers import Delivery, Rejected
from receiver.database import LedgerUnavailable
from receiver.intake import Intake, Outcome
from receiver.keys import KeyUnavailable
from receiver.sources import Source

_PARENT = "traceparent"
_w3c = TraceContextTextMapPropagator()


@cache
def tracer() -> Tracer:
    """Give this process's tracer; the provider is the one that was set up already, by the user, or else ours."""
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        names = {SERVICE_VERSION: version("hookonce")}
        if not os.environ.get("OTEL_SERVICE_NAME"):
            names[SERVICE_NAME] = "hookonce"
        provider = TracerProvider(resource=Resource.create(names))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        trace.set_tracer_provider(provider)
    return trace.get_tracer("hookonce", version("hookonce"))


def flush() -> None:
    """Send what has ended; waits for the collector."""
    provider = trace.get_tracer_provider()
    if isinstance(provider, TracerProvider):
        provider.force_flush()


def parent_of(traceparent: str | None) -> trace.SpanContext | None:
    """Read a `traceparent`; None for none, or for one that is no such thing."""
    carrier = {_PARENT: traceparent} if traceparent else {}
    context = trace.get_current_span(_w3c.extract(carrier)).get_span_context()
    return context if context.is_valid else None


class TracedIntake(Intake):
    """An intake whose deliveries are spans; the events they bring keep the span they came with."""

    def take(self, source: Source, delivery: Delivery) -> Outcome:
        """Take one delivery in, as `Intake` does."""
        theirs = parent_of(delivery.headers.get(_PARENT))
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
                outcome = super().take(source, delivery)
            except Rejected as error:
                span.set_attribute("hookonce.outcome", error.reason)
                raise
            except (LedgerUnavailable, KeyUnavailable):
                span.set_attribute("hookonce.outcome", "unavailable")
                span.set_status(trace.StatusCode.ERROR)
                raise
            _describe(span, outcome)
            return outcome

    def trace(self) -> str | None:
        """Give the `traceparent` of the delivery under way."""
        carrier: dict[str, str] = {}
        _w3c.inject(carrier)
        return carrier.get(_PARENT)


def _describe(span: Span, outcome: Outcome) -> None:
    fresh = "handshake" if outcome.reply is not None else "accepted"
    span.set_attribute("hookonce.outcome", "duplicate" if outcome.is_duplicate else fresh)
    span.set_attribute("hookonce.events", len(outcome.events))
