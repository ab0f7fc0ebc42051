"""`hookonce new`: start a provider of your own, with a test that passes and says what to change."""

import keyword
import os
import re
from collections.abc import Mapping
from pathlib import Path

import click

from hookonce.providers.kit.registry import names
from hookonce.receiver.cli.connections import configured
from hookonce.receiver.cli.new import files, from_capture
from hookonce.receiver.cli.new.config_edit import CanNotEdit, with_place
from hookonce.receiver.cli.output.exits import Exit
from hookonce.receiver.cli.output.tables import clean

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


@click.group()
def new() -> None:
    """Write the beginnings of something of your own."""


@new.command()
@click.argument("name")
@click.option(
    "--places", default="webhook_providers", show_default=True, help="The folder for your providers."
)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A delivery of `hookonce capture`: the module is filled in with what it shows.",
)
@click.option(
    "--secret", default="", help="What that delivery was signed with: tells how. Roll it afterwards."
)
@click.option(
    "--table",
    is_flag=True,
    help="Write nothing: print the table for hookonce.toml that takes such deliveries without a module.",
)
def provider(name: str, places: str, source: Path | None, secret: str, table: bool) -> None:  # noqa: FBT001  a flag
    """Write a provider called NAME, with its test.

    It is for a plain HMAC sender, or with --from for what the delivery shows (a signature or a shared
    token), and is registered in hookonce.toml. Where the generic providers `hmac`, `token` or
    `standard_webhooks` take such a delivery, it proposes the table for that instead. Run `python -m pytest
    tests/providers/NAME`, then change the module until captured deliveries pass too.
    """
    slug = name.lower().replace("-", "_")
    if not _NAME.fullmatch(slug) or keyword.iskeyword(slug):
        raise click.UsageError(
            f"{name!r} can't be a module's name; expected a letter, then letters, digits or _"
        )
    if table:
        if source is None:
            raise click.UsageError("--table needs a captured delivery; add --from")
        click.echo(from_capture.table(slug, source, secret), nl=False)
        return
    settings = configured()
    folder = Path(places)
    is_ours = (folder / f"{slug}.py").exists()  # then `_write` says what to remove
    if not is_ours and slug in names(settings.provider_places):
        raise click.ClickException(
            f"a provider called {slug!r} is there already; see `hookonce providers list`"
        )
    if source:
        written, remarks = from_capture.files(slug, folder, source, secret)
    else:
        written, remarks = {path: text.encode() for path, text in files.files(slug, folder).items()}, []
    _write(written)
    for line in remarks:
        click.echo(clean(line), err=True)
    if folder.as_posix() not in settings.provider_places:
        _register(Path(os.environ.get("HOOKONCE_CONFIG") or "hookonce.toml"), folder.as_posix())
    click.echo(f"now run: python -m pytest tests/providers/{slug}", err=True)


def _write(written: Mapping[Path, bytes]) -> None:
    taken = [str(path) for path in written if path.exists()]
    if taken:
        raise click.ClickException(f"{', '.join(taken)} exists; remove it, or choose another name")
    for path, content in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        click.echo(f"wrote {path}", err=True)


def _register(path: Path, place: str) -> None:
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(with_place(text, place), encoding="utf-8")
    except (CanNotEdit, OSError) as error:
        click.echo(
            f"hookonce: {path} is left as it is: {error}; add '{place}' to providers in [receiver]", err=True
        )
        raise SystemExit(Exit.PARTIAL) from None
    click.echo(f"registered {place} in {path}", err=True)
