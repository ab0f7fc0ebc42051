"""The configuration: `hookonce.toml` (path in HOOKONCE_CONFIG), the environment on top, every mistake at once.

DATABASE_URL and REDIS_URL win over the file; with neither, the embedded servers of `hookonce dev` in
HOOKONCE_DATA (or `.hookonce/`) are used if they run. `HOOKONCE_SECRET__STRIPE=new,old` makes or re-keys the
source `stripe` without any file. Secrets are references (`env:NAME`, `env:NAME?` if it may be absent,
`file:/path`), so that the file can be committed.
"""

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from pydantic import AfterValidator, Field

from hookonce.receiver.config import server_urls
from hookonce.receiver.config.addresses import Address
from hookonce.receiver.config.admin import ADMIN_TOKEN, Admin
from hookonce.receiver.config.alerts import Alerts
from hookonce.receiver.config.commands import Command, read_commands
from hookonce.receiver.config.encryption_keys import read_keyring
from hookonce.receiver.config.file_mistakes import validated
from hookonce.receiver.config.forwards import Forward, read_forwards
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.secret_references import Lookup
from hookonce.receiver.config.servers import (
    NO_POSTGRESQL,
    RECEIVER_VARIABLES,
    data_directory,
    find_servers,
    path_of,
    read_toml,
    said_by_variables,
)
from hookonce.receiver.config.sources import SECRET_PREFIX, Around, read_source, with_options
from hookonce.receiver.config.tracing import Tracing, is_traced
from hookonce.receiver.durations import format_duration
from hookonce.receiver.encryption import OFF, Keyring
from hookonce.receiver.source import TABLE, Resolved, Source, Span, outlasts_retries

RETRY_MARGIN = timedelta(days=1)
"""How much longer than a source's sender retries its events are remembered."""


MAX_RELEASE_LENGTH = 100
MAX_CONCURRENCY = 256
"""Each run takes a thread, and a connection while it has a transaction."""
DESK_VARIABLE = "HOOKONCE_DESK"
CONSOLE_VARIABLE = "HOOKONCE_CONSOLE"
_DESK = re.compile(r"off|door|unix:.+|\S*:\d{1,5}")


def _desk(address: str) -> str:
    if not _DESK.fullmatch(address):
        raise ValueError(f"{address!r} is no address; expected host:port, unix:PATH, 'door' or 'off'")
    return address


@dataclass(frozen=True)
class Settings:
    """The settings of this inbox.

    With the keys of `[receiver]`, they hold everything else that hookonce was told; nothing of it changes.
    """

    __pydantic_config__ = TABLE

    database_url: Annotated[str, AfterValidator(server_urls.postgresql_url)] = field(default="", repr=False)
    """PostgreSQL; DATABASE_URL wins"""
    redis_url: Annotated[str, AfterValidator(server_urls.queue_url)] = field(default="", repr=False)
    """Redis or Valkey; REDIS_URL wins"""
    sources: Resolved[Mapping[str, Source]] = field(default_factory=dict)
    _: KW_ONLY
    window_redis_url: Annotated[str, AfterValidator(server_urls.window_url)] = field(default="", repr=False)
    """another Redis, or a Redis Cluster, for window, limits and sign-in counts; WINDOW_REDIS_URL wins"""
    schema: Annotated[str, AfterValidator(server_urls.schema_name)] = server_urls.USUAL_SCHEMA
    """schema of the ledger's tables in that database; HOOKONCE_SCHEMA wins"""
    handlers: tuple[str, ...] = ()
    """modules with handlers"""
    provider_places: Annotated[tuple[str, ...], Field(alias="providers")] = ()
    """folders, files or packages with providers of your own"""
    desk: Annotated[str, AfterValidator(_desk)] = "127.0.0.1:8001"
    """address at which `hookonce serve` answers `/admin`, `/api` and `/metrics`, which no sender reaches;
    `door` is where deliveries come, `off` nowhere; HOOKONCE_DESK wins"""
    public_url: str = ""
    """address at which senders reach you, up to `/hooks/`; for senders that sign the URL"""
    max_body: Annotated[int, Field(ge=1024, le=1 << 30)] = 25 * 1024 * 1024
    """bytes of a body, where neither the source nor its sender's module says so; 413 beyond"""
    keep_events: Annotated[Span, AfterValidator(outlasts_retries)] = timedelta(days=90)
    """how long an id is known; longer than your senders retry"""
    keep_bodies: Span = timedelta(days=30)
    """how long an event can be seen in full, and replayed"""
    keep_rejected: Span = timedelta(days=7)
    """how long rejected deliveries stay"""
    keep_audit: Span = timedelta(days=365)
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
    data: Resolved[Path] = Path(".hookonce")
    keyring: Resolved[Keyring] = field(default=OFF, compare=False)
    admin: Resolved[Admin] = field(default_factory=Admin)
    alerts: Resolved[Alerts] = field(default_factory=Alerts)
    tracing: Resolved[bool] = False
    commands: Resolved[Mapping[str, Command]] = field(default_factory=dict)
    forwards: Resolved[Mapping[str, Forward]] = field(default_factory=dict)
    processes: Resolved[int] = 1
    release: Resolved[str] = ""
    console: Resolved[str] = ""

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
            self.admin.token,
            *self.keyring.spellings,
        ]


@dataclass(frozen=True)
class File:
    """The tables of hookonce.toml."""

    __pydantic_config__ = TABLE

    receiver: Settings = field(default_factory=Settings)
    admin: Admin = field(default_factory=Admin)
    alerts: Alerts = field(default_factory=Alerts)
    tracing: Tracing = field(default_factory=Tracing)
    sources: dict[str, Source] = field(default_factory=dict)
    commands: dict[str, Command] = field(default_factory=dict)
    forwards: dict[str, Forward] = field(default_factory=dict)


def load_settings(environ: Mapping[str, str] | None = None, *, need_secrets: bool = True) -> Settings:
    """Read the configuration. Raises `ConfigError` with every mistake, none of which shows a secret.

    Workers and the command line pass `need_secrets=False`: they verify nothing, so a secret that is missing
    from their environment is not a mistake.
    """
    environ = os.environ if environ is None else environ
    mistakes: list[str] = []
    file = _read_file(environ, mistakes, need_secrets=need_secrets)
    table = file.receiver
    servers = find_servers(environ, table.database_url, table.redis_url)
    settings = replace(
        table,
        database_url=server_urls.with_schema(servers.database_url, table.schema),
        redis_url=servers.redis_url,
        sources=_read_sources(file, environ, mistakes, need_secrets=need_secrets),
        data=data_directory(environ),
        keyring=read_keyring(table.encryption_keys, environ, mistakes, need_all=need_secrets),
        admin=file.admin,
        alerts=file.alerts,
        tracing=is_traced(file.tracing, environ, mistakes),
        commands=read_commands(file.commands, mistakes),
        forwards=read_forwards(file.forwards, environ, mistakes),
        processes=_processes(environ),
        console=(environ.get(CONSOLE_VARIABLE) or table.public_url).rstrip("/"),
        release=_release(environ, mistakes),
    )
    if table.keep_locals and not table.encryption_keys:
        mistakes.append(
            "[receiver] keep_locals keeps values of events: it needs encryption_keys, which seal what is kept"
        )
    if mistakes:
        raise ConfigError(mistakes)
    return settings


def _read_sources(
    file: File, environ: Mapping[str, str], mistakes: list[str], *, need_secrets: bool
) -> dict[str, Source]:
    receiver, sources = file.receiver, dict[str, Source]()
    around = Around(environ, need_secrets, receiver.provider_places, receiver.public_url)
    for name, table in file.sources.items():
        source = read_source(name, table, around, mistakes)
        if source is not None:
            sources[name] = source
            mistakes += [f"source '{name}': {each}" for each in _forgotten_too_early(source, receiver)]
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


def _read_file(environ: Mapping[str, str], mistakes: list[str], *, need_secrets: bool) -> File:
    """Return the tables, with what the environment has for them in the place of what the file has."""
    said: dict[str, Any] = {}
    try:
        said = read_toml(environ)
    except ConfigError as error:
        mistakes += error.mistakes
    receiver, sources = said.setdefault("receiver", {}), said.setdefault("sources", {})
    if isinstance(receiver, dict):
        receiver |= said_by_variables(environ)
    if environ.get(ADMIN_TOKEN, "").strip() and isinstance(admin := said.setdefault("admin", {}), dict):
        admin["token"] = f"env:{ADMIN_TOKEN}"
    if isinstance(sources, dict):
        for variable in filter(_names_secret, environ):
            table = sources.setdefault(variable.removeprefix(SECRET_PREFIX).lower(), {})
            if isinstance(table, dict):
                table["secrets"] = [f"env:{variable}"]
        said["sources"] = {
            name: with_options(name, table) if isinstance(table, dict) else table
            for name, table in sources.items()
        }
    lookup = Lookup(environ, need_secrets)
    return validated(File, said, lookup, mistakes, partial(_place, environ))


def _place(environ: Mapping[str, str], table: str, key: str) -> str:
    """Name a setting: the variable that has set it, or where it is in the file."""
    variable = RECEIVER_VARIABLES.get(key, "") if table == "receiver" else ""
    return variable if environ.get(variable) else f"{path_of(environ)}: [{table}] {key}".rstrip()


def _names_secret(variable: str) -> bool:
    return variable.startswith(SECRET_PREFIX) and variable != SECRET_PREFIX


def _forgotten_too_early(source: Source, receiver: Settings) -> Iterator[str]:
    """Yield that the ledger forgets what a sender may still retry, or a quarantine holds: it would be a new event."""
    kept, horizon = source.keep_events or receiver.keep_events, source.provider.retry_horizon
    if horizon is not None and kept < horizon + RETRY_MARGIN:
        days = math.ceil((horizon + RETRY_MARGIN) / timedelta(days=1))
        where = "its keep_events" if source.keep_events else "[receiver] keep_events, or its own,"
        yield f'its sender retries for {horizon.days} d; set {where} to "{days}d" or more'
    if source.quarantine and not receiver.encryption_keys:
        yield (
            "quarantine keeps whole deliveries and needs encryption_keys in [receiver]; "
            "`hookonce keys generate` makes one"
        )
    if source.quarantine and source.quarantine.time > kept - RETRY_MARGIN:
        longest = format_duration(kept - RETRY_MARGIN)
        yield (
            f"what is in quarantine for {format_duration(source.quarantine.time)} may have been handled and "
            f"forgotten; expected {longest} at most, a day less than keep_events in [receiver]"
        )


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
