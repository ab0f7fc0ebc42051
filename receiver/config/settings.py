"""The configuration: `hookonce.toml` (path in HOOKONCE_CONFIG), the environment on top, every mistake at once.

DATABASE_URL and REDIS_URL win over the file; with neither, the embedded servers of `hookonce dev` in
HOOKONCE_DATA (or `.hookonce/`) are used if they run. `HOOKONCE_SECRET__STRIPE=new,old` makes or re-keys the
source `stripe` without any file. Secrets are references (`env:NAME`, `env:NAME?` if it may be absent,
`file:/path`), so that the file can be committed.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass as standard_dataclass
from dataclasses import field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field
from pydantic.dataclasses import dataclass

from hookonce.receiver.config import server_urls
from hookonce.receiver.config.addresses import Address
from hookonce.receiver.config.admin import Admin, admin_token
from hookonce.receiver.config.alerts import Alerts, read_alerts
from hookonce.receiver.config.commands import Command, CommandTable, read_commands
from hookonce.receiver.config.concurrency import MAX_CONCURRENCY, concurrency
from hookonce.receiver.config.durations import parse_duration
from hookonce.receiver.config.encryption_keys import read_keyring
from hookonce.receiver.config.file_mistakes import TABLE, validated
from hookonce.receiver.config.forwards import Forward, ForwardTable, read_forwards
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
from hookonce.receiver.config.tracing import Tracing, is_traced
from hookonce.receiver.encryption import OFF, Keyring
from hookonce.receiver.source import Source

RETRY_MARGIN = timedelta(days=1)
"""How much longer than a source's sender retries its events are remembered."""


MAX_RELEASE_LENGTH = 100
DESK_VARIABLE = "HOOKONCE_DESK"
CONSOLE_VARIABLE = "HOOKONCE_CONSOLE"
_Span = Annotated[timedelta, BeforeValidator(parse_duration)]


@dataclass(frozen=True, kw_only=True, config=TABLE)
class Receiver:
    """The keys of `[receiver]`."""

    handlers: tuple[str, ...] = ()
    """modules with handlers"""
    provider_places: Annotated[tuple[str, ...], Field(alias="providers")] = ()
    """folders, files or packages with providers of your own"""
    database_url: str = field(default="", repr=False)
    """PostgreSQL; DATABASE_URL wins"""
    redis_url: str = field(default="", repr=False)
    """Redis or Valkey; REDIS_URL wins"""
    window_redis_url: str = field(default="", repr=False)
    """another Redis, or a Redis Cluster, for window, limits and sign-in counts; WINDOW_REDIS_URL wins"""
    schema_: Annotated[str, Field(alias="schema")] = server_urls.USUAL_SCHEMA
    """schema of the ledger's tables in that database; HOOKONCE_SCHEMA wins"""
    desk: Annotated[str, Field(pattern="^(off|door|unix:.+|\\S*:\\d{1,5})$")] = "127.0.0.1:8001"
    """address at which `hookonce serve` answers `/admin`, `/api` and `/metrics`, which no sender reaches;
    `door` is where deliveries come, `off` nowhere; HOOKONCE_DESK wins"""
    public_url: str = ""
    """address at which senders reach you, up to `/hooks/`; for senders that sign the URL"""
    max_body: Annotated[int, Field(ge=1024, le=1 << 30)] = 25 * 1024 * 1024
    """bytes of a body, where neither the source nor its sender's module says so; 413 beyond"""
    keep_events: Annotated[_Span, AfterValidator(outlasts_retries)] = timedelta(days=90)
    """how long an id is known; longer than your senders retry"""
    keep_bodies: _Span = timedelta(days=30)
    """how long an event can be seen in full, and replayed"""
    keep_rejected: _Span = timedelta(days=7)
    """how long rejected deliveries stay"""
    keep_audit: _Span = timedelta(days=365)
    """how long it stays who did what"""
    auto_prune: bool = True
    """the sweep prunes in small steps; else run `hookonce prune` daily"""
    shared_flushes: bool = True
    """quick runs share a flush of the disk; else each waits for its own"""
    rq_requeue: bool = False
    """`rq requeue` replays a dead run; then whoever can write to Redis can replay what is dead"""
    concurrency: Annotated[int, Field(ge=1, le=MAX_CONCURRENCY)] = 1
    """runs at once per worker process; HOOKONCE_CONCURRENCY wins"""
    encryption_keys: tuple[str, ...] = ()
    """references to keys; the first seals what is stored, all open"""
    log_ids: Literal["plain", "hash"] = "plain"
    """whether logs hold senders' ids and accounts as they are, or hashed"""
    run_logs: Literal["off", "debug", "info", "warning", "error"] = "info"
    """lines that handlers print are kept with their attempts, and lines of their packages' loggers from this
    level on, others from `HOOKONCE_LOG_LEVEL` on; or `off`"""
    keep_locals: bool = False
    """a failed attempt keeps what variables of the handler's frames held; needs `encryption_keys`, and is shown with
    the scope `bodies` alone"""


class _File(BaseModel):
    model_config = TABLE

    receiver: Receiver = Field(default_factory=Receiver)
    admin: Admin = Field(default_factory=Admin)
    alerts: Alerts = Field(default_factory=Alerts)
    tracing: Tracing = Field(default_factory=Tracing)
    sources: dict[str, SourceTable] = Field(default_factory=dict)
    commands: dict[str, CommandTable] = Field(default_factory=dict)
    forwards: dict[str, ForwardTable] = Field(default_factory=dict)


@standard_dataclass(frozen=True)
class Settings(Receiver, Admin):
    """Everything hookonce was told; immutable. `database_url` and `redis_url` may hold passwords."""

    database_url: str = field(repr=False)
    redis_url: str = field(repr=False)
    sources: Mapping[str, Source]
    data: Path = Path(".hookonce")
    keyring: Keyring = field(default=OFF, compare=False)
    alerts: Alerts = field(default_factory=Alerts)
    tracing: bool = False
    commands: Mapping[str, Command] = field(default_factory=dict)
    forwards: Mapping[str, Forward] = field(default_factory=dict)
    processes: int = 1
    release: str = ""
    desk: str = field(default="door", kw_only=True)
    console: str = field(default="", kw_only=True)

    @property
    def window_url(self) -> str:
        """The address of window, limits and sign-in counts: with RQ's queue, unless they have a Redis of their own."""
        return self.window_redis_url or self.redis_url

    def horizons(self) -> dict[str, timedelta]:
        """Return how long events are kept of the sources (and commands) that say so themselves."""
        own = {source.name: source.keep_events for source in self.sources.values()}
        own |= {command.source: command.keep_events for command in self.commands.values()}
        return {name: kept for name, kept in own.items() if kept is not None}

    def secrets(self) -> list[str]:
        """Return every secret that is known here: of sources and alerts, of servers' URLs, of the console, and keys."""
        urls = (self.database_url, self.redis_url, self.window_redis_url)
        passwords = [server_urls.split(url).password for url in urls if url]
        of_sources = [secret for source in self.sources.values() for secret in source.secrets]
        tokens = [each.auth.values() for each in self.commands.values()]
        return [
            *of_sources,
            *(token for of_command in tokens for of_client in of_command for token in of_client),
            *(unquote(each) for each in passwords if each),
            *(secret for forward in self.forwards.values() for secret in forward.secrets),
            *(Address.parse(each.broker).password for each in self.sources.values() if each.broker),
            *self.alerts.secrets,
            self.admin_token,
            *self.keyring.spellings,
        ]


def load_settings(environ: Mapping[str, str] | None = None, *, need_secrets: bool = True) -> Settings:
    """Read the configuration. Raises `ConfigError` with every mistake, none of which shows a secret.

    Workers and the command line pass `need_secrets=False`: they verify nothing, so a secret that is missing
    from their environment is not a mistake.
    """
    environ = os.environ if environ is None else environ
    mistakes: list[str] = []
    file = _read_file(environ, mistakes)
    table = file.receiver
    public_url = environ.get("HOOKONCE_PUBLIC_URL") or table.public_url
    servers = find_servers(environ, table.database_url, table.redis_url)
    mistakes.extend(server_urls.url_mistakes(servers.database_url, servers.redis_url))
    window_url = environ.get("WINDOW_REDIS_URL") or table.window_redis_url
    mistakes.extend(server_urls.window_mistakes(window_url, servers.redis_url))
    schema = server_urls.schema_named(environ, table.schema_, mistakes)
    found = {
        "database_url": server_urls.with_schema(servers.database_url, schema),
        "redis_url": servers.redis_url,
        "window_redis_url": window_url,
        "sources": _read_sources(file, environ, mistakes, need_secrets=need_secrets),
        "handlers": _handlers(table, environ),
        "data": data_directory(environ),
        "keyring": read_keyring(table.encryption_keys, environ, mistakes, need_all=need_secrets),
        "admin_token": admin_token(file.admin.admin_token, environ, mistakes, need_secrets=need_secrets),
        "alerts": read_alerts(file.alerts, environ, mistakes),
        "tracing": is_traced(file.tracing, environ, mistakes),
        "concurrency": concurrency(table.concurrency, environ, mistakes),
        "commands": read_commands(file.commands, environ, mistakes, need_secrets=need_secrets),
        "forwards": read_forwards(file.forwards, environ, mistakes),
        "processes": _processes(environ),
        "public_url": public_url,
        "console": (environ.get(CONSOLE_VARIABLE) or public_url).rstrip("/"),
        "release": _release(environ, mistakes),
        "desk": environ.get(DESK_VARIABLE) or table.desk,
    }
    if table.keep_locals and not table.encryption_keys:
        mistakes.append(
            "[receiver] keep_locals keeps values of events: it needs encryption_keys, which seal what is kept"
        )
    if mistakes:
        raise ConfigError(mistakes)
    return Settings(**vars(table) | vars(file.admin) | found)


def _read_sources(
    file: _File, environ: Mapping[str, str], mistakes: list[str], *, need_secrets: bool
) -> dict[str, Source]:
    table = file.receiver
    public_url = environ.get("HOOKONCE_PUBLIC_URL") or table.public_url
    sources: dict[str, Source] = {}
    for name, source_table in _with_zero_file_sources(file.sources, environ).items():
        reader = SourceReader(name, source_table, environ, mistakes, need_secrets=need_secrets)
        source = reader.read(table.provider_places, source_table.public_url or public_url)
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
            merged[name] = table.model_copy(update={"secrets": (f"env:{variable}",)})
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


def _handlers(table: Receiver, environ: Mapping[str, str]) -> tuple[str, ...]:
    named = environ.get("HOOKONCE_HANDLERS")
    if named is None:
        return table.handlers
    return tuple(module.strip() for module in named.split(",") if module.strip())
