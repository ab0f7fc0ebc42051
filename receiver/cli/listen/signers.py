"""With whose module and which secret `hookonce listen` signs the events of a source.

A source that is configured here by the same name has its module, its options and its secret, or that which `hookonce
dev` has made up for it. Every other has the module of its sender, and a secret that is made up once and kept beside the
cursor. The one of production stays there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from hookonce.providers import KeyNeeded, Rejected
from hookonce.providers.kit.crypto.public_keys import can_sign, public_half
from hookonce.providers.kit.provider import Provider
from hookonce.providers.kit.registry import load
from hookonce.receiver.cli import local_sources
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.config.settings import Settings
from hookonce.receiver.dev.generated_secrets import made_up
from hookonce.receiver.remote.pull import CursorFile
from hookonce.receiver.samples import documents


class NoSigner(Exception):  # noqa: N818  a state of the world
    """Events of a source can't be signed here; the text says why, and nothing of a secret."""


@dataclass(frozen=True, slots=True)
class Signer:
    """A sender's module and a secret to sign with; `is_made_up` if it was made up here."""

    provider: Provider
    secret: str = field(repr=False)
    is_made_up: bool

    def introduction(self) -> Iterator[str]:
        """Yield what the program that receives is to know."""
        if not self.is_made_up:
            yield "signed with the secret that is configured here"
        elif not self.secret:
            yield "its sender proves nothing, so it is not signed"
        elif can_sign(self.secret):
            yield "signed with a private key that was made up; its public key is"
            yield from public_half(self.secret).strip().splitlines()
        else:
            yield f"secret {self.secret}"


class Signers:
    """The signers by source, looked up once."""

    def __init__(self, settings: Settings, file: CursorFile) -> None:
        self._settings = settings
        self._sources = local_sources.sources(settings)
        self._file = file
        self._known: dict[tuple[str, str], Signer | NoSigner] = {}

    def is_known(self, source: str, provider: str) -> bool:
        """Whether this source was asked for before."""
        return (source, provider) in self._known

    def of(self, source: str, provider: str) -> Signer:
        """Return who signs for a source. Raises: `NoSigner`, OSError where a new secret can't be kept."""
        key = source, provider
        if key not in self._known:
            try:
                self._known[key] = self._signer(source, provider)
            except NoSigner as error:
                self._known[key] = error
        found = self._known[key]
        if isinstance(found, NoSigner):
            raise found
        return found

    def _signer(self, source: str, name: str) -> Signer:
        here = self._sources.get(source)
        if here is not None and here.provider.name == name:
            if here.secrets:
                configured = self._settings.sources.get(source)
                is_made_up = configured is None or not configured.secrets  # by `hookonce dev`
                return _tried(Signer(here.provider, here.secrets[0], is_made_up))
            provider = here.provider
        else:
            try:
                provider = load(name, self._settings.provider_places)
            except (LookupError, ValueError) as error:
                raise NoSigner(
                    f"{clean(str(error.args[0] if error.args else error))}; configure [sources.{clean(source)}] "
                    "in hookonce.toml here as it is configured there"
                ) from None
        kept = self._file.kept.secrets.get(source)
        secret = made_up(provider, kept)
        if secret is None:
            raise NoSigner(f"no secret can be made up for {name}: it signs with keys of its own")
        signer = _tried(Signer(provider, secret, is_made_up=True))
        if secret != kept:
            self._file.keep(secrets={**self._file.kept.secrets, source: secret})
        return signer


def _tried(signer: Signer) -> Signer:
    """Sign a sample. Raises: `NoSigner` where nobody but the sender itself can."""
    provider, secret, now = signer.provider, signer.secret, datetime.now(UTC)
    try:
        made = documents.fresh(provider, None, now).delivery(secret, now, "http://localhost/")
        provider.verify(replace(made, readings={}), [secret], now)
    except KeyNeeded:
        raise NoSigner(f"{provider.name} signs with a key that it alone has") from None
    except ValueError as error:
        raise NoSigner(str(error)) from None
    except Rejected:
        pass  # a sample may be old, or none of these options: the event itself will tell
    return signer
