"""`hookonce doctor`: checks everything a delivery and its runs need, and says what to do."""

import logging
import os
import sys
from collections.abc import Iterator

import click

from hookonce.receiver.cli.doctor import brokers, configuration, handlers, servers
from hookonce.receiver.cli.doctor.ledger_checks import ledger_checks
from hookonce.receiver.cli.doctor.servers import Finding
from hookonce.receiver.cli.output.colors import paint
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import put, tell
from hookonce.receiver.cli.output.tables import clean, print_json
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import load_settings


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object per check.")
def doctor(*, as_json: bool) -> None:
    """Check configuration, handlers, PostgreSQL, Redis and workers; exit 1 if a check fails."""
    failed: list[str] = []
    for finding in _findings():
        failed += [finding.check] if finding.level == "fail" else []
        if as_json:
            print_json(finding._asdict())
        else:
            level = paint(finding.level, f"{finding.level:<4}")
            put(f"{level}  {finding.check:<14} {clean(finding.text)}", " " * 21)
    if failed:
        tell(f"failed: {clean(', '.join(failed))}")
        sys.exit(Exit.FAILURE)


def _findings() -> Iterator[Finding]:
    level = os.environ.get("HOOKONCE_LOG_LEVEL") or "WARNING"
    if level.upper() not in logging.getLevelNamesMapping():
        text = f"HOOKONCE_LOG_LEVEL is {level!r}; expected DEBUG, INFO, WARNING, ERROR or CRITICAL"
        yield Finding("fail", "log level", text)
    try:
        settings = load_settings(need_secrets=False)
    except ConfigError as error:
        yield from (Finding("fail", "configuration", mistake) for mistake in error.mistakes)
        return
    servers.require_released(settings.database_url)
    yield from configuration.configuration(settings)
    yield from handlers.handlers(settings)
    yield from configuration.secrets(settings)
    yield from configuration.urls(settings)
    yield from servers.postgresql(settings.database_url)
    yield from ledger_checks(settings)
    yield from servers.redis_server(settings.redis_url)
    if settings.window_redis_url:
        yield from servers.window_server(settings.window_redis_url)
    yield from brokers.forwards(settings)
    yield from brokers.consumers(settings)
