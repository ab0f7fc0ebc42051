"""Traces, if they are wanted: whoever does not want them imports nothing of OpenTelemetry and pays nothing.

One trace goes from a delivery (`receiver.otel`) to each run of its events (`jobs.traced`), by the `traceparent`
that is kept beside each body; so it holds over any time, process and machine in between.
"""

from importlib import import_module
from typing import TypeVar, cast

from receiver.settings import Settings

Plain = TypeVar("Plain")


def traced(plain: type[Plain], name: str, settings: Settings) -> type[Plain]:
    """Give the class that traces what `plain` does, by its dotted name, or `plain` itself where nothing is traced."""
    if not settings.tracing:
        return plain
    module, _, attribute = name.rpartition(".")
    return cast("type[Plain]", getattr(import_module(module), attribute))


def flush(settings: Settings) -> None:
    """Send what has been traced: to be called before a process ends without ado, as a work-horse does."""
    if settings.tracing:
        import_module("receiver.otel").flush()
