"""The configuration: `hookonce.toml` (path in HOOKONCE_CONFIG), the environment on top, every mistake at once.

DATABASE_URL and REDIS_URL win over the file; with neither, the embedded servers of `hookonce dev` in
HOOKONCE_DATA (or `.hookonce/`) are used if they run. `HOOKONCE_SECRET__STRIPE=new,old` makes or re-keys the
source `stripe` without any file. Secrets are references (`env:NAME`, `env:NAME?` if it may be absent,
`file:/path`), so that the file can be committed.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from hookonce.receiver.config import server_urls
from hookonce.receiver.config.admin import AdminTable, Network, admin_token, send_to, trusted_proxies
from hookonce.receiver.config.alerts import Alerts, AlertsTable, read_alerts
from hookonce.receiver.config.commands import Command, CommandTable, read_commands
from hookonce.receiver.config.concurrency import MAX_CONCURRENCY, concurrency
from hookonce.receiver.config.durations import parse_duration
from hookonce.receiver.config.encryption_keys import read_keyring
from hookonce.receiver.config.file_mistakes import validated
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.quarantine import quarantine_mistakes
from hookonce.receiver.config.servers import (
    NO_POSTGRESQL,
    data_directory,
    find_servers,
    path_of,
    read_toml,
)
from hookonce.receiver.config.source_choices import outlasts_retries
from hookonce.receiver.config.sources import SECRET_PREFIX, SourceReader, SourceTable
from hookonce.receiver.config.tracing import TracingTable, is_traced
from hookonce.receiver.encryption import OFF, Keyring
from hookonce.receiver.source import Limit, Source

RETRY_MARGIN = timedelta(days=1)
"""How much longer than a source's sender retries its events are remembered."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything hookonce was told; immutable. `database_url` and `redis_url` may hold passwords."""

    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    sources: Mapping[str, Source]
    handlers: tuple[str, ...] = ()
    provider_places: tuple[str, ...] = ()
    max_body: int = 25 * 1024 * 1024
    data: Path = Path(".hookonce")
    keep_events: timedelta = timedelta(days=90)
    keep_bodies: timedelta = timedelta(days=30)
    keep_rejected: timedelta = timedelta(days=7)
    keep_audit: timedelta = timedelta(days=365)
    auto_prune: bool = True
    shared_flushes: bool = True
    rq_requeue: bool = False
    keyring: Keyring = field(default=OFF, compare=False)
    admin_token: str = field(default="", repr=False)
    trusted_proxies: tuple[Network, ...] = ()
    send_to: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    alerts: Alerts = field(default_factory=Alerts)
    tracing: bool = False
    concurrency: int = 1
    log_ids: Literal["plain", "hash"] = "plain"
    run_logs: Literal["off", "debug", "info", "warning", "error"] = "info"
    commands: Mapping[str, Command] = field(default_factory=dict)
    processes: int = 1
    token_rate: Limit | None = None
    token_quota: Limit | None = None
    public_url: str = ""
    release: str = ""
    desk: str = "door"

    def horizons(self) -> dict[str, timedelta]:
        """Return how long events are kept of the sources (and commands) that say so themselves."""
        own = {source.name: source.keep_events for source in self.sources.values()}
        own |= {command.source: command.keep_events for command in self.commands.values()}
        return {name: kept for name, kept in own.items() if kept is not None}

    def secrets(self) -> list[str]:
        """Return every secret that is known here: of sources and alerts, of servers' URLs, of the console, and keys."""
        passwords = [server_urls.split(url).password for url in (self.database_url, self.redis_url) if url]
        of_sources = [secret for source in self.sources.values() for secret in source.secrets]
        tokens = [each.tokens.values() for each in self.commands.values()]
        return [
            *of_sources,
            *(token for of_command in tokens for of_client in of_command for token in of_client),
            *(unquote(each) for each in passwords if each),
            self.alerts.secret,
            self.admin_token,
            *self.keyring.spellings,
        ]


MAX_RELEASE_LENGTH = 100
DESK_VARIABLE = "HOOKONCE_DESK"
_Span = Annotated[timedelta, BeforeValidator(parse_duration)]


class _ReceiverTable(BaseModel):
    model_config = ConfigDict(extra="forbid")

    handlers: list[str] = Field(default_factory=list, description="modules with handlers")
    providers: list[str] = Field(
        default_factory=list, description="folders, files or packages with providers of your own"
    )
    database_url: str | None = Field(default=None, description="PostgreSQL; DATABASE_URL wins")
    redis_url: str | None = Field(default=None, description="Redis or Valkey; REDIS_URL wins")
    schema_: str = Field(
        default=server_urls.USUAL_SCHEMA,
        alias="schema",
        description="schema of the ledger's tables in that database; HOOKONCE_SCHEMA wins",
    )
    desk: str = Field(
        default="127.0.0.1:8001",
        pattern=r"^(off|door|unix:.+|\S*:\d{1,5})$",
        description="address at which `hookonce serve` answers `/admin`, `/api` and `/metrics`, which no sender "
        "reaches; `door` is where deliveries come, `off` nowhere; HOOKONCE_DESK wins",
    )
    public_url: str = Field(
        default="",
        description="address at which senders reach you, up to `/hooks/`; for senders that sign the URL",
    )
    max_body: int = Field(
        default=25 * 1024 * 1024,
        ge=1024,
        le=1 << 30,
        description="bytes of a body, where neither the source nor its sender's module says so; 413 beyond",
    )
    keep_events: Annotated[_Span, AfterValidator(outlasts_retries)] = Field(
        default=timedelta(days=90), description="how long an id is known; longer than your senders retry"
    )
    keep_bodies: _Span = Field(
        default=timedelta(days=30), description="how long an event can be seen in full, and replayed"
    )
    keep_rejected: _Span = Field(default=timedelta(days=7), description="how long rejected deliveries stay")
    keep_audit: _Span = Field(default=timedelta(days=365), description="how long it stays who did what")
    auto_prune: bool = Field(
        default=True, description="the sweep prunes in small steps; else run `hookonce prune` daily"
    )
    shared_flushes: bool = Field(
        default=True, description="quick runs share a flush of the disk; else each waits for its own"
    )
    rq_requeue: bool = Field(
        default=False,
        description="`rq requeue` replays a dead run; then whoever can write to Redis can replay what is dead",
    )
    concurrency: int = Field(
        default=1,
        ge=1,
        le=MAX_CONCURRENCY,
        description="runs at once per worker process; HOOKONCE_CONCURRENCY wins",
    )
    encryption_keys: list[str] = Field(
        default_factory=list, description="references to keys; the first seals what is stored, all open"
    )
    log_ids: Literal["plain", "hash"] = Field(
        default="plain", description="whether logs hold senders' ids and accounts as they are, or hashed"
    )
    run_logs: Literal["off", "debug", "info", "warning", "error"] = Field(
        default="info",
        description="lines that handlers print are kept with their attempts, and lines of their packages' loggers from "
        "this level on, others from `HOOKONCE_LOG_LEVEL` on; or `off`",
    )


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    receiver: _ReceiverTable = Field(default_factory=_ReceiverTable)
    admin: AdminTable = Field(default_factory=AdminTable)
    alerts: AlertsTable = Field(default_factory=AlertsTable)
    tracing: TracingTable = Field(default_factory=TracingTable)
    sources: dict[str, SourceTable] = Field(default_factory=dict)
    commands: dict[str, CommandTable] = Field(default_factory=dict)


def load_settings(environ: Mapping[str, str] | None = None, *, need_secrets: bool = True) -> Settings:
    """Read the configuration. Raises `ConfigError` with every mistake, none of which shows a secret.

    Workers and the command line pass `need_secrets=False`: they verify nothing, so a secret that is missing
    from their environment is not a mistake.
    """
    environ = os.environ if environ is None else environ
    mistakes: list[str] = []
    file = _read_file(environ, mistakes)
    table = file.receiver
    sources = _read_sources(file, environ, mistakes, need_secrets=need_secrets)
    keyring = read_keyring(table.encryption_keys, environ, mistakes, need_all=need_secrets)
    token = admin_token(file.admin, environ, mistakes, need_secrets=need_secrets)
    proxies = trusted_proxies(file.admin, mistakes)
    targets = send_to(file.admin, mistakes)
    alerts = read_alerts(file.alerts, environ, mistakes)
    tracing = is_traced(file.tracing, environ, mistakes)
    at_once = concurrency(table.concurrency, environ, mistakes)
    commands = read_commands(file.commands, environ, mistakes, need_secrets=need_secrets)
    servers = find_servers(environ, table.database_url, table.redis_url)
    mistakes.extend(server_urls.url_mistakes(servers.database_url, servers.redis_url))
    schema = server_urls.schema_named(environ, table.schema_, mistakes)
    release = _release(environ, mistakes)
    if mistakes:
        raise ConfigError(mistakes)
    return Settings(
        database_url=server_urls.with_schema(servers.database_url, schema),
        redis_url=servers.redis_url,
        sources=sources,
        handlers=_handlers(table, environ),
        provider_places=tuple(table.providers),
        max_body=table.max_body,
        data=data_directory(environ),
        keep_events=table.keep_events,
        keep_bodies=table.keep_bodies,
        keep_rejected=table.keep_rejected,
        keep_audit=table.keep_audit,
        auto_prune=table.auto_prune,
        shared_flushes=table.shared_flushes,
        rq_requeue=table.rq_requeue,
        keyring=keyring,
        admin_token=token,
        trusted_proxies=proxies,
        send_to=targets,
        hosts=tuple(file.admin.hosts),
        alerts=alerts,
        tracing=tracing,
        concurrency=at_once,
        log_ids=table.log_ids,
        run_logs=table.run_logs,
        commands=commands,
        processes=_processes(environ),
        token_rate=file.admin.token_rate,
        token_quota=file.admin.token_quota,
        public_url=environ.get("HOOKONCE_PUBLIC_URL") or table.public_url,
        release=release,
        desk=environ.get(DESK_VARIABLE) or table.desk,
    )


def _read_sources(
    file: _File, environ: Mapping[str, str], mistakes: list[str], *, need_secrets: bool
) -> dict[str, Source]:
    table = file.receiver
    public_url = environ.get("HOOKONCE_PUBLIC_URL") or table.public_url
    sources: dict[str, Source] = {}
    for name, source_table in _with_zero_file_sources(file.sources, environ).items():
        reader = SourceReader(name, source_table, environ, mistakes, need_secrets=need_secrets)
        source = reader.read(tuple(table.providers), source_table.public_url or public_url)
        if source is not None:
            sources[name] = source
    mistakes.extend(_forgotten_too_early(sources.values(), table.keep_events))
    for each in sources.values():
        longest = (each.keep_events or table.keep_events) - RETRY_MARGIN
        mistakes += quarantine_mistakes(
            each.name, each.quarantine, longest, is_sealed=bool(table.encryption_keys)
        )
    return sources


def require_servers(settings: Settings) -> None:
    """Raise `ConfigError` unless both servers have an address."""
    mistakes = []
    if not settings.database_url:
        mistakes.append(NO_POSTGRESQL)
    if not settings.redis_url:
        mistakes.append("no Redis to use; set REDIS_URL, or start `hookonce dev` in this directory")
    if mistakes:
        raise ConfigError(mistakes)


def _read_file(environ: Mapping[str, str], mistakes: list[str]) -> _File:
    try:
        said = read_toml(environ)
    except ConfigError as error:
        mistakes += error.mistakes
        return _File()
    return validated(_File, said, mistakes, str(path_of(environ)))


def _forgotten_too_early(sources: Iterable[Source], kept: timedelta) -> Iterator[str]:
    """Find senders that may still retry when the ledger has forgotten: the retry would be a new event."""
    for source in sources:
        horizon = source.provider.retry_horizon
        if horizon is not None and (source.keep_events or kept) < horizon + RETRY_MARGIN:
            days = math.ceil((horizon + RETRY_MARGIN) / timedelta(days=1))
            where = "its keep_events" if source.keep_events else "[receiver] keep_events, or its own,"
            yield (
                f"source '{source.name}': its sender retries for {horizon.days} d; "
                f'set {where} to "{days}d" or more'
            )


def _with_zero_file_sources(
    tables: Mapping[str, SourceTable], environ: Mapping[str, str]
) -> dict[str, SourceTable]:
    merged = dict(tables)
    for variable in environ:
        name = variable.removeprefix(SECRET_PREFIX).lower()
        if variable.startswith(SECRET_PREFIX) and name:
            table = merged.get(name, SourceTable())
            merged[name] = table.model_copy(update={"secrets": [f"env:{variable}"]})
    return merged


def _processes(environ: Mapping[str, str]) -> int:
    """Return how many receivers gunicorn runs here, as it is told; 1 for what says nothing."""
    told = environ.get("WEB_CONCURRENCY", "")
    return max(1, int(told)) if told.isascii() and told.isdigit() else 1


def _release(environ: Mapping[str, str], mistakes: list[str]) -> str:
    name = environ.get("HOOKONCE_RELEASE", "").strip()
    if len(name) > MAX_RELEASE_LENGTH or not name.isprintable():
        mistakes.append(
            f"HOOKONCE_RELEASE has {len(name)} characters, or some that can't be printed; expected "
            f"{MAX_RELEASE_LENGTH} at most, as of a version or a revision"
        )
    return name


def _handlers(table: _ReceiverTable, environ: Mapping[str, str]) -> tuple[str, ...]:
    named = environ.get("HOOKONCE_HANDLERS")
    if named is None:
        return tuple(table.handlers)
    return tuple(module.strip() for module in named.split(",") if module.strip())
