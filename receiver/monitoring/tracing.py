"""Traces, if they are wanted: whoever does not want them imports nothing of OpenTelemetry and pays nothing.

One trace goes from a delivery (`receiver.intake.traced`) to each run of its events (`jobs.attempts.traces`), by the
`traceparent` that is kept beside each body; so it holds over any time, process and machine in between.
"""

from hookonce.receiver.config.settings import Settings


def flush(settings: Settings) -> None:
    """Send what has been traced: to be called before a process ends without cleaning up, as a work-horse does."""
    if settings.tracing:
        from hookonce.receiver.monitoring import otel

        otel.flush()
