"""`hookonce capture`: the next delivery as a `.http` file, ready to be a test case of a new provider."""

import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, Queue

import click

from hookonce.providers.kit.http_file import Captured, written
from hookonce.receiver.cli import local_sources
from hookonce.receiver.cli.capture import server, shapes
from hookonce.receiver.cli.capture.masking import Masker
from hookonce.receiver.cli.connections import configured
from hookonce.receiver.cli.options import completion_types
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.config.mistakes import ConfigError

PORT = 8000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_POLL_INTERVAL = 0.2  # seconds between looks for Ctrl-C


@click.command()
@click.argument("source", shell_complete=completion_types.SOURCES)
@click.option(
    "--port", default=PORT, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one."
)
@click.option("--bind", default="127.0.0.1", show_default=True, help="0.0.0.0 lets other machines in.")
@click.option("--count", default=1, show_default=True, type=click.IntRange(1), help="Stop after so many.")
@click.option(
    "--output", type=click.Path(path_type=Path), help="A file, or a folder for SOURCE-1.http and so on."
)
@click.option("--keep", multiple=True, metavar="HEADER", help="Do not mask this header.")
@click.option("--wait", type=click.FloatRange(0), metavar="SECONDS", help="Give up then; default is never.")
def capture(  # noqa: PLR0913, PLR0917  its options
    source: str,
    port: int,
    bind: str,
    count: int,
    output: Path | None,
    keep: tuple[str, ...],
    wait: float | None,
) -> None:
    """Print the next delivery to SOURCE as a raw .http file: request line, headers, blank line, exact body.

    Listens by itself, on any path, and answers 200: point the sender, or a tunnel, at it. SOURCE may be any
    name; nothing is verified or stored. Credentials in headers and URL are masked; the body is kept as it is.
    """
    if not _NAME.fullmatch(source):
        raise click.UsageError(
            f"{source!r} can't be a file's name; expected letters, digits, '_', '-' or '.'"
        )
    is_folder = output is not None and (output.is_dir() or not output.suffix)
    if count > 1 and not is_folder:
        raise click.UsageError("several deliveries go into a folder; name it: --output deliveries/")
    if output and not is_folder and output.exists():
        raise click.ClickException(f"{output} exists; remove it, or choose another name")
    if output:
        _require_place(output if is_folder else output.parent)
    masker = Masker(_secrets(source), keep)
    try:
        with server.listening(bind, port) as (at, requests):
            tell(f"waiting for {count} at http://{_url_host(bind)}:{at}/hooks/{source}; Ctrl-C stops")
            for request in _next(requests, count, wait):
                _put(masker, request, source, output, is_folder=is_folder)
    except server.CanNotListen as error:
        raise click.ClickException(
            f"can't listen on {bind}:{port} ({error}); choose another with --port"
        ) from None


def _require_place(folder: Path) -> None:
    """Raise ClickException now, not when a delivery is there, if nothing can be written into the folder."""
    there = next(each for each in (folder.absolute(), *folder.absolute().parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise click.ClickException(f"nothing can be written into {there}; choose another --output")


def _secrets(source: str) -> tuple[str, ...]:
    """The secrets of a source that is configured; a provider that is not written yet is no reason to stop."""
    try:
        known = local_sources.sources(configured())
    except ConfigError:
        tell("the configuration has mistakes; secrets in it are not looked for")
        return ()
    return known[source].secrets if source in known else ()


def _url_host(bind: str) -> str:
    return "127.0.0.1" if bind in {"", "0.0.0.0"} else bind  # noqa: S104  shown, not bound


def _next(requests: Queue[Captured], count: int, wait: float | None) -> Iterator[Captured]:
    deadline = None if wait is None else time.monotonic() + wait
    for _ in range(count):
        while True:
            try:
                yield requests.get(timeout=_POLL_INTERVAL)
                break
            except Empty:
                if deadline is not None and time.monotonic() > deadline:
                    raise click.ClickException(f"nothing came within {wait:g} s") from None


def _put(masker: Masker, request: Captured, source: str, output: Path | None, *, is_folder: bool) -> None:
    masked, what = masker.masked(request)
    raw = written(masked)
    if output is None:
        _print(raw)
        where = ""
    else:
        path = _free(output, source) if is_folder else output
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.write(raw)
        where = f" in {path}"
    hidden = f"; masked: {', '.join(what)}" if what else ""
    text = f"captured {masked.method} {masked.target}, {len(masked.body)} bytes{where}{hidden}"
    tell(clean(text))
    for line in shapes.described(request, what):
        tell(clean(line))


def _print(raw: bytes) -> None:
    """Print the exact bytes, but to a terminal only what is printable: a sender may have put escapes into it."""
    if sys.stdout.isatty():
        for line in raw.decode("utf-8", "backslashreplace").split("\n"):
            click.echo(clean(line))
        return
    click.echo(raw, nl=False)


def _free(folder: Path, source: str) -> Path:
    number = 1
    while (path := folder / f"{source}-{number}.http").exists():
        number += 1
    return path
