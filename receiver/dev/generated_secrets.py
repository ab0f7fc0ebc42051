"""Generated signing secrets of `hookonce dev`, kept in `dev.json` so that senders need not be told new ones.

`{"port": 8000, "secrets": {"stripe": "whsec_…"}, "admin_token": "…"}`, readable by its owner only.
A configured secret always wins; the file holds the generated ones that are in force.
"""

import base64
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hookonce.providers.kit.crypto.public_keys import new_key
from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.registry import load
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.source import Source

STATE = "dev.json"
USUAL = ("stripe", "github")
"""The sources of a directory in which neither a source nor a command is configured."""


def make(settings: Settings) -> dict[str, str]:
    """Return a secret for each source that has none: the one of last time, or a new one.

    Raises `ConfigError` naming sources whose kind of secret can't be made up.
    """
    without = {
        name: source
        for name, source in settings.sources.items()
        if not source.secrets and (source.provider.needs_secret or not source.provider.key_algorithm)
    }
    if not settings.sources and not settings.commands:
        without = {name: Source(name, load(name, settings.provider_places), ()) for name in USUAL}
    kept = _saved_secrets(settings.data)
    made, mistakes = {}, []
    for name, source in without.items():
        provider = source.provider
        found = made_up(provider, kept.get(name))
        if found is None:
            mistakes.append(
                f"source '{name}' has no signing secret and none can be made up; set {source.secret_places}"
            )
        else:
            made[name] = found
    if mistakes:
        raise ConfigError(mistakes)
    return made


def made_up(provider: Provider, kept: str | None = None) -> str | None:
    """Return a secret such as a sender of this kind has, the `kept` one if it fits; None where none can be made up."""
    return next((one for one in _candidates(kept, provider) if _fits(one, provider)), None)


def admin_token(settings: Settings) -> str:
    """Return the token of the dashboard: the configured one, that of last time, or a new one."""
    kept = _read(settings.data).get("admin_token")
    return settings.admin.token or (kept if isinstance(kept, str) and kept else secrets.token_hex(24))


def save(data: Path, port: int, made: Mapping[str, str], token: str) -> None:
    """Write the file, whole or not at all; and keep git from taking the directory in."""
    (data / ".gitignore").write_text("*\n", encoding="ascii")
    unfinished = data / f"{STATE}.new"
    unfinished.unlink(missing_ok=True)
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"port": port, "secrets": dict(made), "admin_token": token}, file, indent=2)
    unfinished.replace(data / STATE)


def variable(source: str) -> str:
    """Return the environment variable that gives a source its secret."""
    return f"HOOKONCE_SECRET__{source.upper()}"


def _saved_secrets(data: Path) -> Mapping[str, str]:
    kept = _read(data).get("secrets")
    return (
        {name: text for name, text in kept.items() if isinstance(text, str)} if isinstance(kept, dict) else {}
    )


def _read(data: Path) -> dict[str, Any]:
    try:
        read = json.loads((data / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


def _candidates(kept: str | None, provider: Provider) -> Iterator[str]:
    prefixed = "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode()
    plain = secrets.token_hex(32)
    yield from [kept] if kept else []
    if provider.key_algorithm:  # half of a pair: with the private key we can sign test deliveries
        yield new_key(provider.key_algorithm).strip().replace("\n", "\\n")
    yield from (prefixed, plain) if provider.name == "stripe" else (plain, prefixed)
    if not provider.fetches:  # else the secret is what its keys are asked for with
        yield from (f"hookonce:{plain}", f"hookonce&{plain}")  # a user and a password, a key and its secret
        yield new_key("rsa-sha256").strip().replace("\n", "\\n")


def _fits(secret: str, provider: Provider) -> bool:
    try:
        if provider.check_secret:
            provider.check_secret(secret)
    except ValueError:
        return False
    return True
