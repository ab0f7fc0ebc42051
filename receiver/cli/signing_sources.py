"""Provider and secrets that a command signs or verifies with: a source's, or a provider's and references."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import click

from hookonce.providers import Delivery, Rejected
from hookonce.providers.kit import http_file
from hookonce.providers.kit.http_file import Captured
from hookonce.providers.kit.reading.content_coding import decoded
from hookonce.receiver.cli import local_sources
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.config.sources import Around, read_source, table_of
from hookonce.receiver.source import Source

SOURCE = click.option(
    "--source", help="With the provider and secrets of this source.", shell_complete=completion_types.SOURCES
)
SECRET = click.option(
    "--secret",
    "references",
    multiple=True,
    metavar="REFERENCE",
    help="env:NAME or file:/path, never the secret itself; may be repeated.",
)
_NAME = "command-line"


def prover(settings: Settings, source: str | None, provider: str | None, references: Sequence[str]) -> Source:
    """Return the source of that name, or one made of a provider and references; either way with secrets.

    Raises: UsageError, NotFound, ConfigError.
    """
    if bool(source) == bool(provider):
        raise click.UsageError("name a provider, or a source with --source; one of the two")
    if provider:
        return _made(settings, provider, references)
    found = local_sources.source(settings, source or "")
    if references:
        raise click.UsageError("--secret goes with a provider; a source has its own")
    return found


def request(path: Path) -> Captured:
    """Read a .http file. Raises: ClickException saying which line is not as it should be."""
    try:
        return http_file.read(path.read_bytes())
    except (OSError, ValueError) as error:
        text = error.strerror if isinstance(error, OSError) else error
        raise click.ClickException(f"{path}: {text}") from None


def delivery(sent: Captured, source: Source) -> Delivery:
    """Return a captured request as a delivery to a source, at its URL if it has one."""
    target = sent.target if "://" not in sent.target else sent.target.partition("://")[2].partition("/")[2]
    path, _, query = ("/" + target.lstrip("/")).partition("?")
    url = source.url_of(path, query) if source.url or source.public_url else sent.url
    path_secret = path.partition(f"/hooks/{source.name}/")[2]
    made = Delivery(sent.method, url, sent.lowered(), sent.body, path_secret)
    with suppress(Rejected):  # the receiver says so
        return decoded(made, _LONGEST_TEXT) if source.provider.verifies_text else made
    return made


def _made(settings: Settings, provider: str, references: Sequence[str]) -> Source:
    mistakes: list[str] = []
    around = Around(os.environ, need_secrets=True, places=settings.provider_places, public_url=_URL)
    source = read_source(_NAME, table_of(provider, *references), around, mistakes)
    if mistakes or source is None:
        raise ConfigError([mistake.replace(f"source '{_NAME}'", provider) for mistake in mistakes])
    return replace(source, name=source.provider.name, public_url="")


_LONGEST_TEXT = 1 << 30
_URL = "https://hookonce.invalid"
"""Stands in where a provider wants to know our URL; the delivery's own counts."""
