"""The sources a command on this machine can send to: the configured ones, and those `hookonce dev` made up.

`hookonce dev` keeps its port and the secrets it generated in `dev.json` in the data directory.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from hookonce.providers import Delivery
from hookonce.providers.kit.registry import load, names
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.servers import path_of
from hookonce.receiver.config.settings import Settings, load_settings
from hookonce.receiver.config.sources import SECRET_PREFIX
from hookonce.receiver.config.suggestions import no_source
from hookonce.receiver.desk.refusals import NotFound
from hookonce.receiver.source import Source

PORT = 8000


@dataclass(frozen=True)
class Dev:
    """The state file of `hookonce dev`; empty if it never ran."""

    port: int | None
    secrets: Mapping[str, str]


def dev(data: Path) -> Dev:
    """Read `dev.json` of a data directory; a broken one counts as none."""
    try:
        state = json.loads((data / "dev.json").read_text(encoding="utf-8"))
        secrets = {str(name): str(secret) for name, secret in dict(state["secrets"]).items()}
        return Dev(int(state["port"]), secrets)
    except (OSError, ValueError, LookupError, TypeError):
        return Dev(None, {})


def base_url(settings: Settings) -> str:
    """Return where the receiver listens: PORT, else where `hookonce dev` runs, else port 8000, on this machine."""
    port = os.environ.get("PORT") or dev(settings.data).port or PORT
    return f"http://127.0.0.1:{port}"


def addressed(url: str, delivery: Delivery) -> str:
    """Return the URL that a delivery goes to: with the secret behind it, where a sender proves itself by that."""
    parts, secret = urlsplit(url), f"/{delivery.path_secret}"
    if not delivery.path_secret or parts.path.endswith(secret):
        return url
    return parts._replace(path=parts.path + secret).geturl()


def sources(settings: Settings) -> dict[str, Source]:
    """Return every source by name, with the secrets of `hookonce dev` where the configuration has none."""
    running = dev(settings.data)
    found = {
        name: replace(each, tests=each.tests or running.port is not None)
        for name, each in settings.sources.items()
    }
    for name, secret in running.secrets.items():
        if name in found:
            if not found[name].secrets:
                found[name] = replace(found[name], secrets=(secret,))
        elif not settings.sources:
            with suppress(LookupError, ValueError):  # of a configuration that is no longer there
                found[name] = Source(name, load(name, settings.provider_places), (secret,))
    return found


def source(settings: Settings, name: str) -> Source:
    """Return a source by name. Raises: `NotFound` with the nearest name."""
    known = sources(settings)
    if name not in known:
        if not known and not path_of(os.environ).exists():
            raise NotFound(
                f"no source is called {name!r}: there is no hookonce.toml in {Path.cwd()}; go to the directory where "
                "`hookonce dev` runs, or begin a project here with `hookonce init`"
            )
        if name in names(settings.provider_places):
            raise NotFound(
                f"no source is called {name!r}, though {name} is a sender that hookonce knows: "
                f'add [sources.{name}] with provider = "{name}" to hookonce.toml'
            )
        raise NotFound(no_source(name, known))
    return known[name]


def missing_secret(name: str) -> str:
    """Return that a source has no secret here, and which variable or file of its configuration has none."""
    try:
        load_settings()
    except ConfigError as error:
        for mistake in error.mistakes:
            if mistake.startswith(f"source '{name}'") and "secret" in mistake:
                return mistake
    return f"source '{name}' has no signing secret; set {SECRET_PREFIX}{name.upper()}"
