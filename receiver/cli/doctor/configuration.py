"""Findings of `hookonce doctor` about the configuration: sources with their secrets and URLs, and modules."""

from collections.abc import Iterator

from hookonce.receiver.cli.connections import UNREACHABLE, ledger
from hookonce.receiver.cli.doctor.servers import Finding
from hookonce.receiver.cli.local_sources import dev, sources
from hookonce.receiver.cli.output.words import counted
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.ledger import handshake_secrets


def configuration(settings: Settings) -> Iterator[Finding]:
    """Say what is configured, and what is missing."""
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
            f"{counted(len(settings.sources), 'source')}, handlers in {', '.join(settings.handlers)}",
        )
    else:
        yield Finding(
            "warn",
            "configuration",
            "no handlers: `hookonce worker` will ignore every event; name modules in [receiver] handlers"
            " (Django's worker finds its own, in webhooks.py)",
        )


def secrets(settings: Settings) -> Iterator[Finding]:
    """Say which sources have secrets; one may be missing here and present where the receiver runs, so this warns."""
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


def urls(settings: Settings) -> Iterator[Finding]:
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
