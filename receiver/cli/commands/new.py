"""`hookonce new`: start a provider of your own, with a test that passes and says what to change."""

import keyword
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from hookonce import providers
from hookonce.providers.kit.registry import names
from hookonce.receiver.cli.connections import configured
from hookonce.receiver.cli.new import from_capture
from hookonce.receiver.cli.new.config_edit import CanNotEdit, with_place
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


@click.group()
def new() -> None:
    """Write the beginnings of something of your own."""


@new.command()
@click.argument("name")
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A delivery of `hookonce capture`: the module is filled in with what it shows.",
)
@click.option(
    "--secret",
    default="",
    help="The secret of that delivery, or the sender's public key: finds the scheme. Roll a secret afterwards.",
)
@click.option(
    "--table",
    is_flag=True,
    help="Write nothing: print the table for hookonce.toml that takes such deliveries without a module.",
)
def provider(name: str, source: Path | None, secret: str, table: bool) -> None:  # noqa: FBT001  a flag
    """Write a provider called NAME, with its test.

    It is for a plain HMAC sender, or with --from for what the delivery shows (a signature, a signed or a shared
    token), and is registered in hookonce.toml. Where the generic providers `hmac`, `signed`, `jwt`, `token` or
    `standard_webhooks` take such a delivery, it proposes the table for that instead. Run the test as it
    says, then change the module until captured deliveries pass too. Exit 3 if the secret fits in no way that
    was tried: then the module is a guess.
    """
    slug = name.lower().replace("-", "_")
    if not _NAME.fullmatch(slug) or keyword.iskeyword(slug):
        raise click.UsageError(
            f"{name!r} can't be a module's name; expected a letter, then letters, digits or _"
        )
    if source is None and (table or secret):
        raise click.UsageError(f"--{'table' if table else 'secret'} needs a captured delivery; add --from")
    if os.path.isfile(secret):  # noqa: PTH113  Path.is_file raises for a key, too long for a name
        raise click.UsageError(
            f'--secret is the name of a file; expected what is in it: --secret "$(cat {secret})"'
        )
    if table and source:
        click.echo(from_capture.table(slug, source, secret), nl=False)
        return
    settings = configured()
    is_built_in = Path("providers").resolve() == Path(providers.__file__).resolve().parent
    folder = Path("providers" if is_built_in else "webhook_providers")
    is_ours = (folder / f"{slug}.py").exists()  # then `_write` says what to remove
    if not is_ours and slug in names(settings.provider_places):
        raise click.ClickException(
            f"a provider called {slug!r} is there already; see `hookonce providers list`"
        )
    made = from_capture.files(slug, folder, source, secret)
    contents = made.contents
    if is_built_in:  # one contract test finds ours
        contents = {path: each for path, each in contents.items() if not path.name.startswith("test_")}
    _write(contents)
    for line in map(clean, made.remarks):
        is_toml = line.startswith(" ")  # an inline table stands on one line
        (click.echo(line, err=True) if is_toml else tell(line))
    if not is_built_in and folder.as_posix() not in settings.provider_places:
        _register(Path(os.environ.get("HOOKONCE_CONFIG") or "hookonce.toml"), folder.as_posix())
    which = f"tests/providers -k {slug}" if is_built_in else f"tests/providers/{slug}"
    tell(f"now run: python -m pytest {which}")
    if not made.is_verified:
        sys.exit(Exit.PARTIAL)


def _write(written: Mapping[Path, bytes]) -> None:
    taken = [str(path) for path in written if path.exists()]
    if taken:
        raise click.ClickException(f"{', '.join(taken)} exists; remove it, or choose another name")
    for path, content in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        tell(f"wrote {path}")


def _register(path: Path, place: str) -> None:
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(with_place(text, place), encoding="utf-8")
    except (CanNotEdit, OSError) as error:
        tell(f"hookonce: {path} is left as it is: {error}; add '{place}' to providers in [receiver]")
        raise SystemExit(Exit.PARTIAL) from None
    tell(f"registered {place} in {path}")
