"""`hookonce init`: the three files that a project begins with."""

import tomllib
from pathlib import Path

import click

from hookonce.providers.kit.registry import load
from hookonce.receiver.cli.new import project
from hookonce.receiver.cli.new.project import NewSource
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.new_files import write_new
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.sources import SOURCE_NAME, SourceReader, SourceTable
from hookonce.receiver.samples.evidence import LABELS, evidence


@click.command(epilog=examples("hookonce init", "hookonce init stripe shopify github"))
@click.argument("senders", nargs=-1, metavar="[SENDER…]", shell_complete=completion_types.PROVIDERS)
def init(senders: tuple[str, ...]) -> None:
    """Begin a project here: hookonce.toml, handlers.py and .env, for Stripe or the SENDERs that are named.

    Writes a handler for the usual event of each, and a secret that is made up, so that `hookonce dev` and
    `hookonce trigger` work at once. What is there already is left as it is. `hookonce new provider` is for a sender
    that hookonce does not know.
    """
    sources = [_source(name) for name in dict.fromkeys(senders or ("stripe",))]
    has_toml = not write_new(Path("hookonce.toml"), project.toml(sources))
    write_new(Path("handlers.py"), project.handlers(sources))
    has_dotenv = not write_new(Path(".env"), project.dotenv(sources), mode=0o600)
    ignored = Path(".gitignore")
    if not ignored.exists():
        write_new(ignored, project.IGNORED)
    elif ".env" not in ignored.read_text(encoding="utf-8").split():
        tell(".gitignore does not name .env, which holds secrets: add it")
    missing = [source for source in sources if source.name not in _configured()] if has_toml else []
    if missing:
        tell("\nto add what was asked for to hookonce.toml:\n")
        click.echo("\n".join(source.table for source in missing))
    if has_dotenv and missing:
        tell(f"and to .env: {', '.join(source.variable for source in missing)}")
    labels = {source.provider.name: evidence().get(source.provider.name, "") for source in sources}
    told = [f"{name}: {LABELS[label]} ({label})" for name, label in labels.items() if label in LABELS]
    tell("\n" + "\n".join(told))
    first = sources[0]
    tried = f"hookonce trigger {first.name} {first.sample or ''}".rstrip()
    tell(f"\nnow run: hookonce dev\nand, in a second terminal here: {tried}")


def _source(name: str) -> NewSource:
    """Return a source of a sender. Raises: `ConfigError` for what is none, or needs more than a secret."""
    mistakes: list[str] = []
    if not SOURCE_NAME.fullmatch(name):
        raise click.UsageError(
            f"{name!r} can't be a source's name; `hookonce providers list` shows the senders"
        )
    try:
        provider = load(name.replace("-", "_"), (), None)
    except LookupError as error:
        raise ConfigError([str(error.args[0])]) from None
    except ValueError as error:
        raise ConfigError([f"{name} needs more than a secret: {error}; write its table by hand"]) from None
    source = NewSource(name, provider)
    table = SourceTable(provider=provider.name, secrets=[f"env:{source.variable}?"])
    SourceReader(name, table, {}, mistakes, need_secrets=False).read((), project.PUBLIC_URL)
    if mistakes:
        raise ConfigError(mistakes)
    return source


def _configured() -> set[str]:
    """Return the sources that hookonce.toml has; none where it can't be read, which other commands tell."""
    try:
        sources = tomllib.loads(Path("hookonce.toml").read_text(encoding="utf-8")).get("sources")
    except (OSError, ValueError):
        return set()
    return set(sources) if isinstance(sources, dict) else set()
