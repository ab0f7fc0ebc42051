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
from opentelemetry.trace import Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

TRACEPARENT = "traceparent"
W3C = TraceContextTextMapPropagator()


@cache
def tracer() -> Tracer:
    """Return this process's tracer; the provider is the one that was set up already, by the user, or else ours."""
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
    """Read a `traceparent`; None for none, or for one that is malformed."""
    carrier = {TRACEPARENT: traceparent} if traceparent else {}
    context = trace.get_current_span(W3C.extract(carrier)).get_span_context()
    return context if context.is_valid else None
