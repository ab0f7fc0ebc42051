"""`hookonce doctor`: checks everything a delivery and its runs need, and says what to do."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import suppress

import click
import psycopg

from hookonce.receiver.cli.connections import UNREACHABLE, ledger
from hookonce.receiver.cli.doctor import (
    alert_targets,
    brokers,
    conflicts,
    encryption,
    handlers,
    lost_events,
    never_came,
    servers,
    slots,
)
from hookonce.receiver.cli.doctor.servers import Finding
from hookonce.receiver.cli.local_sources import dev, sources
from hookonce.receiver.cli.output.colors import paint
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import put
from hookonce.receiver.cli.output.tables import clean, print_json
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings, load_settings
from hookonce.receiver.ledger import handshake_secrets
from hookonce.receiver.ledger.database import connections, schema_version
from hookonce.receiver.ledger.database.connections import LedgerUnavailable


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object per check.")
def doctor(*, as_json: bool) -> None:
    """Check configuration, handlers, PostgreSQL, Redis and workers; exit 1 if a check fails."""
    has_failed = False
    for finding in _findings():
        has_failed = has_failed or finding.level == "fail"
        if as_json:
            print_json({"level": finding.level, "check": finding.check, "text": finding.text})
        else:
            level = paint(finding.level, f"{finding.level:<4}")
            put(f"{level}  {finding.check:<14} {clean(finding.text)}", " " * 21)
    if has_failed:
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
    _require_released(settings.database_url)
    yield from _configuration(settings)
    yield from handlers.handlers(settings)
    yield from _secrets(settings)
    yield from _urls(settings)
    yield from servers.postgresql(settings.database_url)
    yield from lost_events.lost_events(settings)
    yield from never_came.never_came(settings)
    yield from conflicts.conflicts(settings)
    yield from alert_targets.alert_targets(settings)
    yield from slots.slots(settings)
    yield from encryption.encryption(settings)
    yield from servers.redis_server(settings.redis_url)
    if settings.window_redis_url:
        yield from servers.window_server(settings.window_redis_url)
    yield from brokers.forwards(settings)
    yield from brokers.consumers(settings)


def _require_released(url: str) -> None:
    """Raise `UnreleasedLedger` for one, of which nothing else is worth knowing; a check says what else is wrong."""
    if url:
        with suppress(LedgerUnavailable, psycopg.Error), connections.connect(url) as connection:
            schema_version.found(connection)


def _configuration(settings: Settings) -> Iterator[Finding]:
    if not sources(settings):
        yield Finding(
            "warn",
            "configuration",
            "no source is configured; `hookonce init stripe` begins with one, or add [sources.stripe] to hookonce.toml"
            " (one that HOOKONCE_SECRET__… makes is known where that is set; a worker handles its events without)",
        )
    elif settings.handlers:
        yield Finding(
            "ok",
            "configuration",
            f"{_sources(settings)}, handlers in {', '.join(settings.handlers)}",
        )
    else:
        yield Finding(
            "warn",
            "configuration",
            "no handlers: `hookonce worker` will ignore every event; name modules in [receiver] handlers"
            " (Django's worker finds its own, in webhooks.py)",
        )


def _sources(settings: Settings) -> str:
    number = len(settings.sources)
    return "1 source" if number == 1 else f"{number} sources"


def _secrets(settings: Settings) -> Iterator[Finding]:
    """A secret may be missing here and present where the receiver runs, so this only warns."""
    made_up = dev(settings.data).secrets
    kept = _handed(settings)
    for name, source in sorted(sources(settings).items()):
        if name in kept and kept[name] not in source.secrets:
            use = "is not among the configured ones" if source.secrets else "is trusted"
            yield Finding(
                "warn",
                f"source {name}",
                f"the secret that its sender handed out {use}; see `hookonce sources secrets list`, then put it into "
                f"the configuration or run `hookonce sources secrets forget {name}`",
            )
        elif source.secrets:
            origin = "made up by `hookonce dev`" if name in made_up else f"{len(source.secrets)} set"
            yield Finding("ok", f"source {name}", f"signing secrets: {origin}")
            for note in source.secret_notes:
                yield Finding("ok" if note.endswith("left out") else "warn", f"source {name}", note)
        elif not source.provider.needs_secret:
            yield Finding("ok", f"source {name}", "needs no secret: its sender's keys are fetched")
        else:
            yield Finding(
                "warn",
                f"source {name}",
                f"no signing secret in this environment: a receiver needs {source.secret_places}, or its sender gets "
                "503; workers, the sweep and `db upgrade` need none",
            )


def _urls(settings: Settings) -> Iterator[Finding]:
    """Say which URL each source is verified with whose sender signs it, or which has one of its own."""
    for name, source in sorted(settings.sources.items()):
        if source.url_reference and not source.url:
            text = f"not in this environment: a receiver needs {source.url_reference.partition(':')[2]}"
            yield Finding("warn", f"url of {name}", text)
        elif source.url and not source.url_reference and source.shown_url != source.url:
            text = 'its credentials are in the file; write url = "env:NAME" and set that variable instead'
            yield Finding("warn", f"url of {name}", f"{source.shown_url}: {text}")
        elif source.url or source.provider.signs_url:
            yield Finding("ok", f"url of {name}", f"signatures are verified with {source.shown_url}")


def _handed(settings: Settings) -> dict[str, str]:
    """Secrets that senders handed out, by source; none while the database is away, which another check tells."""
    try:
        with ledger(settings) as connection:
            return {
                one.source: one.secret
                for one in handshake_secrets.all_kept(connection, settings.keyring)
                if one.secret is not None
            }
    except UNREACHABLE:
        return {}
