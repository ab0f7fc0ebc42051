"""`[tracing]`: whether deliveries and runs are traced. Where spans go is said by OpenTelemetry's own variables."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from hookonce.receiver.source import TABLE

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


@dataclass(frozen=True)
class Tracing:
    """The keys of `[tracing]`; without `enabled`, it is on where OTEL_EXPORTER_OTLP_ENDPOINT is set."""

    __pydantic_config__ = TABLE

    enabled: bool | None = None
    """trace or not, whatever OTEL_EXPORTER_OTLP_ENDPOINT says"""


def is_traced(table: Tracing, environ: Mapping[str, str], mistakes: list[str]) -> bool:
    """Whether to trace. OpenTelemetry that is asked for and not installed is a mistake.

    A platform sets the variables for everything it runs, and that must not keep anything from starting.
    """
    is_wanted = any(environ.get(name) for name in ENDPOINTS) if table.enabled is None else table.enabled
    if not is_wanted:
        return False
    is_there = all(map(_is_installed, _NEEDED))
    if table.enabled and not is_there:
        mistakes.append(
            "[tracing] enabled: OpenTelemetry is not installed; `pip install 'hookonce[otel]'`, or set it to false"
        )
    return is_there and environ.get("OTEL_SDK_DISABLED", "").lower() != "true"


def _is_installed(module: str) -> bool:
    """Whether a module is there; many packages bring a part of OpenTelemetry, and not what sends."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even its package
        return False
