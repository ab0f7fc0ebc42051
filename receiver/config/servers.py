"""Addresses of the servers, from the environment, the file, or the embedded servers that run here.

What needs nothing else of the configuration reads it with this alone: a listing starts in half the time.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from hookonce.receiver.config import embedded_servers, server_urls
from hookonce.receiver.config.embedded_servers import Servers
from hookonce.receiver.config.mistakes import ConfigError

_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_SETTING = re.compile(r"\[+[\w.-]*|\s*[\w.-]+(?=\s)")
_WORD = re.compile(r"[\w.:/@%+~-]+(?:\s+[\w.:/@%+~-]+)*")

RECEIVER_VARIABLES: Final = {
    "database_url": "DATABASE_URL",
    "redis_url": "REDIS_URL",
    "window_redis_url": "WINDOW_REDIS_URL",
    "schema": "HOOKONCE_SCHEMA",
    "desk": "HOOKONCE_DESK",
    "public_url": "HOOKONCE_PUBLIC_URL",
    "concurrency": "HOOKONCE_CONCURRENCY",
}
"""Settings of [receiver], and the variables that win over them."""
NO_POSTGRESQL = "no PostgreSQL to use; set DATABASE_URL, or start `hookonce dev` here, or go to where it runs"


def ledger_url(environ: Mapping[str, str] | None = None) -> str:
    """Return where PostgreSQL is, as `load_settings` would.

    Raises `ConfigError` where the file can't be read, names no text, or nothing says it. What else is wrong with
    the configuration is not looked for.
    """
    environ = os.environ if environ is None else environ
    named, schema = _texts(environ, "database_url", "schema")
    url = find_servers(environ, _checked(server_urls.postgresql_url, named), "").database_url
    if not url:
        raise ConfigError([NO_POSTGRESQL])
    return server_urls.with_schema(url, _schema(environ, schema))


def window_url(environ: Mapping[str, str] | None = None) -> str:
    """Return where the window's Redis is, as `load_settings` would; empty where nothing says it.

    Raises `ConfigError` where the file can't be read, or names no text.
    """
    environ = os.environ if environ is None else environ
    window, redis = _texts(environ, "window_redis_url", "redis_url")
    return window or find_servers(environ, "", redis).redis_url


def ledger_schema() -> str:
    """Return the schema that the ledger lies in, wherever PostgreSQL is. Raises `ConfigError`."""
    return _schema(os.environ, *_texts(os.environ, "schema"))


def _texts(environ: Mapping[str, str], *keys: str) -> list[str]:
    """Return what environment and file say of keys of [receiver], '' for nothing."""
    table = read_toml(environ).get("receiver")
    named = {**(table if isinstance(table, dict) else {}), **said_by_variables(environ)}
    found = [named.get(key, "") for key in keys]
    if not all(isinstance(each, str) for each in found):
        raise ConfigError([f"{path_of(environ)}: [receiver] {', '.join(keys)}: expected text"])
    return found


def _schema(environ: Mapping[str, str], name: str) -> str:
    where = "HOOKONCE_SCHEMA" if environ.get("HOOKONCE_SCHEMA") else "[receiver] schema"
    return _checked(server_urls.schema_name, name or server_urls.USUAL_SCHEMA, f"{where}: ")


def _checked(check: Callable[[str], str], text: str, where: str = "") -> str:
    try:
        return check(text)
    except ValueError as error:
        raise ConfigError([f"{where}{error}"]) from None


def said_by_variables(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of [receiver] that the environment has: they win over the file's."""
    said: dict[str, Any] = {
        key: environ[name] for key, name in RECEIVER_VARIABLES.items() if environ.get(name)
    }
    if (handlers := environ.get("HOOKONCE_HANDLERS")) is not None:
        said["handlers"] = [module.strip() for module in handlers.split(",") if module.strip()]
    return said


def find_servers(environ: Mapping[str, str], database_url: str, redis_url: str) -> Servers:
    """Return where both servers are: at the addresses that are configured, or here; else an address is empty."""
    if not database_url or not redis_url:
        found = embedded_servers.running(data_directory(environ))
        if found is not None:
            return Servers(database_url or found.database_url, redis_url or found.redis_url)
    return Servers(database_url, redis_url)


def data_directory(environ: Mapping[str, str]) -> Path:
    """Return where the embedded servers keep their files: HOOKONCE_DATA, or `.hookonce` here."""
    return Path(environ.get("HOOKONCE_DATA") or ".hookonce")


def path_of(environ: Mapping[str, str]) -> Path:
    """Return which file is the configuration's, whether it is there or not."""
    return Path(environ.get("HOOKONCE_CONFIG") or "hookonce.toml")


def read_toml(environ: Mapping[str, str]) -> dict[str, Any]:
    """Read the file as it is; empty where none is named and none is here. Raises `ConfigError`."""
    path = path_of(environ)
    if not environ.get("HOOKONCE_CONFIG") and not path.exists():
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            [f"{path} can't be read: {error.strerror}; fix HOOKONCE_CONFIG or the file's permissions"]
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError([f"{path} is not valid TOML: it is not UTF-8 at byte {error.start}"]) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([f"{path} is not valid TOML: {error}{_line_of(error, text)}"]) from None


def _line_of(error: tomllib.TOMLDecodeError, text: str) -> str:
    """Return the line that an error of TOML is about; of its words, all but the name of a setting may be a secret."""
    at = _AT_LINE.search(str(error))
    lines = text.splitlines()
    number = int(at[1]) if at else len(lines)
    if not 0 < number <= len(lines):
        return ""
    line = lines[number - 1]
    shown = found[0] if (found := _SETTING.match(line)) else ""
    return f": {shown}{_WORD.sub('…', line[len(shown) :])}"


def require_own_port(desk: str, door_ports: Iterable[str]) -> None:
    """Raise `ConfigError` if the desk's port is one of the door's: requests are told apart by it alone."""
    for port in door_ports:
        if desk.endswith(f":{port}"):
            said = f"deliveries and the desk, {desk}, both have port {port}; expected two ports, whatever the hosts"
            raise ConfigError(
                [f"{said}; set another with --desk or HOOKONCE_DESK, or `door` for one address"]
            )
