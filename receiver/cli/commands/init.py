"""`hookonce init`: the three files that a project begins with."""

import re
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from hookonce.providers.kit.registry import load
from hookonce.receiver.cli.new import project
from hookonce.receiver.cli.new.project import NewSource
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.new_files import write_new
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.config import dotenv_file
from hookonce.receiver.config.mistakes import ConfigError
from hookonce.receiver.config.sources import SOURCE_NAME, Around, read_source, table_of
from hookonce.receiver.samples.evidence import LABELS, evidence

_TOML, _HANDLERS = Path("hookonce.toml"), Path("handlers.py")


@click.command(epilog=examples("hookonce init", "hookonce init stripe shopify github"))
@click.argument("senders", nargs=-1, metavar="[SENDER…]", shell_complete=completion_types.PROVIDERS)
def init(senders: tuple[str, ...]) -> None:
    """Begin a project here: hookonce.toml, handlers.py and .env, for Stripe or the SENDERs that are named.

    Writes a handler for the usual event of each, and a secret that is made up, so that `hookonce dev` and
    `hookonce trigger` work at once. In a project that is there already the tables, handlers and secrets of further
    SENDERs are appended to its files; nothing is written over. `hookonce new provider` is for a sender that hookonce
    does not know.
    """
    sources = [_source(name) for name in dict.fromkeys(senders or ("stripe",))]
    _begin(_TOML, project.toml(sources), _append_tables, sources)
    _begin(_HANDLERS, project.handlers(sources), _append_handlers, sources)
    _begin(dotenv_file.FILE, project.dotenv(sources), _append_secrets, sources, mode=0o600)
    ignored = Path(".gitignore")
    if not ignored.exists():
        write_new(ignored, project.IGNORED)
    elif ".env" not in ignored.read_text(encoding="utf-8").split():
        tell(".gitignore does not name .env, which holds secrets: add it")
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
    table = table_of(provider.name, f"env:{source.variable}?")
    read_source(name, table, Around({}, need_secrets=False, public_url=project.PUBLIC_URL), mistakes)
    if mistakes:
        raise ConfigError(mistakes)
    return source


def _begin(
    path: Path,
    text: str,
    append: Callable[[Iterable[NewSource]], None],
    sources: Iterable[NewSource],
    mode: int = 0o666,
) -> None:
    """Write a file, or append to one that is there what it lacks."""
    if path.exists():
        append(sources)
    else:
        write_new(path, text, mode)


def _append_tables(sources: Iterable[NewSource]) -> None:
    """Append the tables that hookonce.toml lacks; print them where it can't be read, or would not be TOML with them."""
    text = _TOML.read_text(encoding="utf-8")
    try:
        configured = tomllib.loads(text).get("sources", {})
        missing = [source for source in sources if source.name not in configured]
        added = "".join(f"\n{source.table}" for source in missing)
        tomllib.loads(f"{text}\n{added}")
    except ValueError:
        tell(f"\nto add what was asked for to {_TOML}, which can't be appended to:\n")
        click.echo("\n".join(source.table for source in sources))
    else:
        _append(_TOML, text, added, [f"[sources.{source.name}]" for source in missing])


def _append_handlers(sources: Iterable[NewSource]) -> None:
    """Append a handler for each source that handlers.py, which has to import `on`, has none of."""
    text = _HANDLERS.read_text(encoding="utf-8")
    missing = [source for source in sources if f'@on("{source.name}"' not in text]
    added = project.handlers(
        missing, has_head=bool(re.search(r"^from hookonce import .*\bon\b", text, re.MULTILINE))
    )
    _append(_HANDLERS, text, added if missing else "", [f"a handler of {source.name}" for source in missing])


def _append_secrets(sources: Iterable[NewSource]) -> None:
    """Append the secrets that .env lacks."""
    known: dict[str, str] = {}
    dotenv_file.load(known)
    missing = [source for source in sources if source.variable not in known]
    text = dotenv_file.FILE.read_text(encoding="utf-8")
    added = "".join(f"{line}\n" for line in project.secrets(missing))
    _append(dotenv_file.FILE, text, added, [source.variable for source in missing])


def _append(path: Path, text: str, added: str, names: Iterable[str]) -> None:
    """Say that a file gets more, and append it; or that it lacks nothing."""
    if not added:
        tell(f"{path} has all of it already, and is left as it is")
    else:
        tell(f"appending {', '.join(names)} to {path}")
        with path.open("a", encoding="utf-8") as file:
            file.write(added if not text or text.endswith("\n") else f"\n{added}")
