"""Claims and their ends as spans, in the trace that the request is in: imported only where traces are wanted."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, Tracer


def tracer() -> Tracer:
    """Return the tracer of whatever provider this process has."""
    return trace.get_tracer("hookonce")


@contextmanager
def span(name: str, operation: str) -> Iterator[Span]:
    """Begin a span; the key and the request are not in it."""
    with tracer().start_as_current_span(
        name,
        attributes={"hookonce.operation": operation},
        record_exception=False,
        set_status_on_exception=False,
    ) as begun:
        yield begun
