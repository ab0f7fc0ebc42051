"""Health, metrics and traces for an operator's tools: whether we can work, how we do, and where time goes.

`health` answers the probes, `rights` looks at the role in DATABASE_URL; `metrics` is the page that Prometheus reads,
with `ledger_metrics` for what PostgreSQL knows. `tracing` is the switch for traces and `otel` the OpenTelemetry behind
it. `alert_events` makes the events that report alerts, and `log_capture` keeps what handlers print and log.
"""
