"""The files of a new project: hookonce.toml, handlers.py and .env, for the sources that were named."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from hookonce.providers.kit.provider import Provider
from hookonce.receiver.dev import generated_secrets
from hookonce.receiver.samples import documents, files

PUBLIC_URL = "https://hooks.example.com"
_HEAD = """\
# hookonce's configuration; `hookonce docs reference/configuration` lists every key. No secrets in here.
[receiver]
handlers = ["handlers"]  # modules with functions that are decorated with @on
"""
_HANDLERS = '''\
"""Handlers of webhooks; hookonce.toml names this module."""

from hookonce import on
'''
_HANDLER = '''

@on("{place}", "{kind}")
def {name}(event, tx):
    """Handle it: what is written through `tx` is committed together with the event's `done`, or not at all."""
    return {{"seen": event.event_id}}
'''
_DOTENV = """\
# Read by every hookonce command that is started in this directory; variables of the environment win. Never commit it.
"""
_SERVERS = """\
# Without these `hookonce dev` runs servers of its own.
# DATABASE_URL=postgresql://user:password@localhost/name
# REDIS_URL=redis://localhost
"""
IGNORED = ".env\n.hookonce/\n"


@dataclass(frozen=True)
class NewSource:
    """A source to begin with: its name, and who sends."""

    name: str
    provider: Provider

    @property
    def variable(self) -> str:
        """The variable of its secret."""
        return f"{re.sub(r'[^A-Z0-9]', '_', self.name.upper())}_WEBHOOK_SECRET"

    @property
    def sample(self) -> str | None:
        """The name of its usual sample, if it has any."""
        return next(iter(files.types(self.provider.name)), None)

    @property
    def type(self) -> str:
        """The type of that sample's event, as handlers have it; `*` where that is not known."""
        if self.sample is None or (secret := generated_secrets.made_up(self.provider)) is None:
            return "*"
        now = datetime.now(UTC)
        try:
            document = documents.fresh(self.provider, self.sample, now)
            delivery = document.delivery(secret, now, f"{PUBLIC_URL}/hooks/{self.name}")
            decode = self.provider.decode
            return self.provider.events(decode(delivery, (secret,)) if decode else delivery)[0].type
        except Exception:  # noqa: BLE001  a provider of somebody's own, maybe
            return self.sample

    @property
    def table(self) -> str:
        """Its table in hookonce.toml."""
        lines = [
            f"[sources.{self.name}]  # it sends to /hooks/{self.name}",
            f'provider = "{self.provider.name}"',
        ]
        if self.provider.signs_url:
            lines.append(f'public_url = "{PUBLIC_URL}"  # it signs the URL: put what precedes /hooks/ there')
        return "\n".join([*lines, f'secrets = ["env:{self.variable}"]', ""])


def toml(sources: Iterable[NewSource]) -> str:
    """Return hookonce.toml."""
    return "\n".join([_HEAD, *(source.table for source in sources)])


def handlers(sources: Iterable[NewSource], *, has_head: bool = False) -> str:
    """Return handlers.py, with a handler for the usual event of each source; or what to append where it `has_head`."""
    made = []
    for source in sources:
        name = re.sub(r"\W+", "_", f"{source.name} {source.type}".lower()).strip("_")
        made.append(_HANDLER.format(place=source.name, kind=source.type, name=name))
    return ("" if has_head else _HANDLERS) + "".join(made)


def dotenv(sources: Iterable[NewSource]) -> str:
    """Return .env, with a secret for each source."""
    return "\n".join([_DOTENV.rstrip(), *secrets(sources), "", _SERVERS])


def secrets(sources: Iterable[NewSource]) -> list[str]:
    """Return the lines of .env that hold the secrets of sources, made up where that can be."""
    lines = []
    for source in sources:
        secret = generated_secrets.made_up(source.provider)
        said = "Made up: replace it by the one" if secret else "Put here the one"
        lines += [f"# {said} that {source.provider.name} shows you.", f"{source.variable}={secret or ''}"]
    return lines
