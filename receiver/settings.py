"""The configuration: `hookonce.toml` (path in HOOKONCE_CONFIG), the environment on top, every mistake at once.

DATABASE_URL and REDIS_URL win over the file; with neither, the embedded servers of `hookonce dev` in
HOOKONCE_DATA (or `.hookonce/`) are used if they run. `HOOKONCE_SECRET__STRIPE=new,old` makes or re-keys the
source `stripe` without any file. Secrets are references (`env:NAME`, `env:NAME?` if it may be absent,
`file:/path`), so that the file can be committed.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from providers.kit.provider import Provider
from providers.kit.registry import load
from receiver import embedded
from receiver.spans import span

SOURCE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_LONGEST_RETRIES = timedelta(days=3)
"""Senders retry for up to three days; an event forgotten before that would be handled again."""
_SECRET_PREFIX = "HOOKONCE_SECRET__"  # noqa: S105  a variable's name


class ConfigError(Exception):
    """The configuration can't be used; `mistakes` lists everything that is wrong, one line each."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


@dataclass(frozen=True, slots=True)
class Source:
    """One configured place that sends to us; its URL path is `/hooks/<name>`.

    `secrets` may be empty when every reference was optional: deliveries are then answered 503 `no_secret`.
    """

    name: str
    provider: Provider
    secrets: tuple[str, ...]
    repeats: Literal["run", "hold"] = "run"
    conflicts: Literal["accept", "reject"] = "accept"
    window: timedelta = timedelta(hours=1)
    public_url: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything hookonce was told; immutable. `database_url` and `redis_url` may hold passwords."""

    database_url: str
    redis_url: str
    sources: Mapping[str, Source]
    handlers: tuple[str, ...] = ()
    provider_places: tuple[str, ...] = ()
    max_body: int = 25 * 1024 * 1024
    data: Path = Path(".hookonce")
    keep_events: timedelta = timedelta(days=90)
    keep_bodies: timedelta = timedelta(days=30)
    keep_rejected: timedelta = timedelta(days=7)


class _SourceTable(BaseModel):
    model_config = ConfigDict(extra="allow")

    provider: str | None = None
    secrets: list[str] = Field(default_factory=list)
    repeats: Literal["run", "hold"] = "run"
    conflicts: Literal["accept", "reject"] = "accept"
    window: float = Field(default=3600, gt=0, le=30 * 86400, description="seconds")
    public_url: str | None = None


def _outlasts_retries(kept: timedelta) -> timedelta:
    if kept < _LONGEST_RETRIES:
        raise ValueError("expected 3d or more, since a later retry would count as a new event")
    return kept


_Span = Annotated[timedelta, BeforeValidator(span)]


class _ReceiverTable(BaseModel):
    model_config = ConfigDict(extra="forbid")

    handlers: list[str] = Field(default_factory=list)
    providers: list[str] = Field(default_factory=list)
    database_url: str | None = None
    redis_url: str | None = None
    public_url: str = ""
    max_body: int = Field(default=25 * 1024 * 1024, ge=1024, le=1 << 30, description="bytes")
    keep_events: Annotated[_Span, AfterValidator(_outlasts_retries)] = timedelta(days=90)
    keep_bodies: _Span = timedelta(days=30)
    keep_rejected: _Span = timedelta(days=7)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    receiver: _ReceiverTable = Field(default_factory=_ReceiverTable)
    sources: dict[str, _SourceTable] = Field(default_factory=dict)


def load_settings(environ: Mapping[str, str] | None = None, *, need_secrets: bool = True) -> Settings:
    """Read the configuration. Raises `ConfigError` with every mistake, none of which shows a secret.

    Workers and the command line pass `need_secrets=False`: they verify nothing, so a secret that is missing
    from their environment is no mistake.
    """
    environ = os.environ if environ is None else environ
    mistakes: list[str] = []
    file = _read_file(environ, mistakes)
    table = file.receiver
    places = tuple(table.providers)
    sources: dict[str, Source] = {}
    for name, source_table in _with_zero_file_sources(file.sources, environ).items():
        reader = _SourceReader(name, source_table, environ, mistakes, need_secrets=need_secrets)
        source = reader.read(places, source_table.public_url or table.public_url)
        if source is not None:
            sources[name] = source
    data = data_directory(environ)
    database_url, redis_url = _server_urls(table, environ, data)
    if mistakes:
        raise ConfigError(mistakes)
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        sources=sources,
        handlers=_handlers(table, environ),
        provider_places=places,
        max_body=table.max_body,
        data=data,
        keep_events=table.keep_events,
        keep_bodies=table.keep_bodies,
        keep_rejected=table.keep_rejected,
    )


def data_directory(environ: Mapping[str, str]) -> Path:
    """Say where the embedded servers keep their files: HOOKONCE_DATA, or `.hookonce` here."""
    return Path(environ.get("HOOKONCE_DATA") or ".hookonce")


def require_servers(settings: Settings) -> None:
    """Raise `ConfigError` unless both servers have an address."""
    mistakes = []
    if not settings.database_url:
        mistakes.append("no PostgreSQL to use; set DATABASE_URL, or start `hookonce dev` in this directory")
    if not settings.redis_url:
        mistakes.append("no Redis to use; set REDIS_URL, or start `hookonce dev` in this directory")
    if mistakes:
        raise ConfigError(mistakes)


def _read_file(environ: Mapping[str, str], mistakes: list[str]) -> _File:
    named = environ.get("HOOKONCE_CONFIG")
    path = Path(named or "hookonce.toml")
    if not named and not path.exists():
        return _File()
    try:
        return _File.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        mistakes.append(
            f"{path} can't be read: {error.strerror}; mend HOOKONCE_CONFIG or the file's permissions"
        )
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        mistakes.append(f"{path} is not valid TOML: {error}")
    except ValidationError as error:
        mistakes.extend(f"{path}: {line}" for line in _explain(error))
    return _File()


def _explain(error: ValidationError) -> Iterator[str]:
    """Turn pydantic's findings into one line each, with a suggestion for a misspelt key; values stay out."""
    for finding in error.errors(include_input=False, include_url=False):
        *parents, key = [str(part) for part in finding["loc"]]
        where = ".".join(parents) or "top level"
        if finding["type"] == "extra_forbidden":
            model = _ReceiverTable if parents[:1] == ["receiver"] else _File
            yield f"[{where}] has no setting '{key}'{_did_you_mean(key, list(model.model_fields))}"
        else:
            yield f"[{where}] {key}: {finding['msg'].lower()}"


def _did_you_mean(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; it has {', '.join(sorted(known))}"


def _with_zero_file_sources(
    tables: Mapping[str, _SourceTable], environ: Mapping[str, str]
) -> dict[str, _SourceTable]:
    merged = dict(tables)
    for variable in environ:
        name = variable.removeprefix(_SECRET_PREFIX).lower()
        if variable.startswith(_SECRET_PREFIX) and name:
            table = merged.get(name, _SourceTable())
            merged[name] = table.model_copy(update={"secrets": [f"env:{variable}"]})
    return merged


def _server_urls(table: _ReceiverTable, environ: Mapping[str, str], data: Path) -> tuple[str, str]:
    database_url = environ.get("DATABASE_URL") or table.database_url or ""
    redis_url = environ.get("REDIS_URL") or table.redis_url or ""
    if not database_url or not redis_url:
        servers = embedded.running(data)
        if servers is not None:
            return database_url or servers.database_url, redis_url or servers.redis_url
    return database_url, redis_url


def _handlers(table: _ReceiverTable, environ: Mapping[str, str]) -> tuple[str, ...]:
    named = environ.get("HOOKONCE_HANDLERS")
    if named is None:
        return tuple(table.handlers)
    return tuple(module.strip() for module in named.split(",") if module.strip())


class _SourceReader:
    """Reads one source's table into a `Source`, adding to the list of mistakes."""

    def __init__(
        self,
        name: str,
        table: _SourceTable,
        environ: Mapping[str, str],
        mistakes: list[str],
        *,
        need_secrets: bool,
    ) -> None:
        self._need_secrets = need_secrets
        self._name = name
        self._table = table
        self._environ = environ
        self._mistakes = mistakes

    def read(self, places: tuple[str, ...], public_url: str) -> Source | None:
        """Give the source, or None if a mistake makes it unusable."""
        if not SOURCE_NAME.fullmatch(self._name):
            self._mistake("the name must be 1 to 63 of a-z 0-9 _ - and start with a letter or digit")
        provider = self._provider(places)
        secrets = tuple(secret for reference in self._table.secrets for secret in self._resolve(reference))
        if provider is None:
            return None
        for slot, secret in enumerate(secrets):
            try:
                if provider.check_secret:
                    provider.check_secret(secret)
            except ValueError as error:
                self._mistake(f"secret {slot + 1} is not one: {error}")
        return Source(
            name=self._name,
            provider=provider,
            secrets=secrets,
            repeats=self._table.repeats,
            conflicts=self._table.conflicts,
            window=timedelta(seconds=self._table.window),
            public_url=public_url.rstrip("/"),
        )

    def _provider(self, places: tuple[str, ...]) -> Provider | None:
        name = (self._table.provider or self._name).replace("-", "_")
        options = self._options(name)
        try:
            return load(name, places, options)
        except (LookupError, ValueError, ImportError) as error:
            self._mistake(str(error.args[0] if error.args else error))
            return None

    def _options(self, provider: str) -> dict[str, Any] | None:
        """Take the sub-table named like the provider; any other unknown key is a mistake."""
        options: dict[str, Any] | None = None
        for key, value in (self._table.model_extra or {}).items():
            if key.replace("-", "_") == provider and isinstance(value, dict):
                options = value
            else:
                known = [*_SourceTable.model_fields, provider]
                self._mistake(f"has no setting '{key}'{_did_you_mean(key, known)}")
        return options

    def _resolve(self, reference: str) -> list[str]:
        kind, _, rest = reference.partition(":")
        if kind == "env" and rest:
            return self._from_environment(rest)
        if kind == "file" and rest:
            return self._from_file(rest)
        self._mistake('secrets are references; write "env:NAME" or "file:/path" instead of the secret itself')
        return []

    def _from_environment(self, rest: str) -> list[str]:
        variable = rest.removesuffix("?")
        value = self._environ.get(variable, "").strip()
        if not value:
            if self._need_secrets and not rest.endswith("?"):
                self._mistake(f"has no signing secret; set {variable} or name another in its secrets")
            return []
        if variable.startswith(_SECRET_PREFIX):
            return [part.strip() for part in value.split(",") if part.strip()]
        return [value]

    def _from_file(self, rest: str) -> list[str]:
        path = Path(rest.removesuffix("?"))
        try:
            value = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            is_allowed = rest.endswith("?") and isinstance(error, FileNotFoundError)
            if self._need_secrets and not is_allowed:
                self._mistake(f"secret file {path} can't be read: {type(error).__name__}")
            return []
        if not value:
            self._mistake(f"secret file {path} is empty")
        return [value] if value else []

    def _mistake(self, text: str) -> None:
        self._mistakes.append(
            f"source '{self._name}' {text}" if text.startswith("has ") else f"source '{self._name}': {text}"
        )
