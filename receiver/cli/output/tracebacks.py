"""A traceback on a terminal: the handler's own frames with their code, those of libraries folded, the error last."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import click

from hookonce.receiver.cli.output.tables import clean
from hookonce.receiver.desk.rows import Frame, Raised, Traceback, calls

_LINES = 2
"""Lines of code of a frame: that at which it stood, and the one before."""
_LINKS = {"cause": "which caused", "context": "and while that was handled", "": ""}


def lines(frames: Traceback | None, unreadable: str | None) -> list[str]:
    """Return the lines of a failed attempt's traceback, in colour and safe for a terminal; none where none was kept.

    `unreadable`: why the traceback can't be opened.
    """
    if frames:
        return [line for raised in frames.errors for line in _error(raised)]
    return [clean(unreadable)] if unreadable else []


def place(frames: Traceback | None) -> Iterator[str]:
    """Yield the innermost frame in the user's code, of the error that ended an attempt or of one that led to it."""
    raised = reversed(frames.errors) if frames else ()
    own = (frame for each in raised for frame in reversed(each.frames) if frame.is_users)
    if found := next(own, None):
        yield from _own(found)


def _error(raised: Raised) -> Iterator[str]:
    if raised.older:
        yield click.style(f"  {raised.older} older frames are left out", dim=True)
    for each in calls(raised):
        if each.is_users:
            yield from _own(each.frames[0])
            yield from (
                click.style(f"      {clean(name)} = {clean(value)}", dim=True)
                for name, value in each.frames[0].local_values
            )
        else:
            yield click.style(f"  {clean(each.folded)}", dim=True)
    for number, line in enumerate(clean(raised.said, lines=True).splitlines()):
        yield click.style(line, fg="red", bold=not number)
    for inner in raised.inner:
        yield click.style(f"  {inner.number} of {inner.of}:", dim=True)
        yield from (f"    {line}" for each in inner.errors for line in _error(each))
    if raised.skipped:
        yield click.style(f"{raised.skipped} more errors between these", dim=True)
    elif raised.link:
        yield click.style(_LINKS[raised.link], dim=True)


def _own(frame: Frame) -> Iterator[str]:
    yield click.style(
        f"  {clean(_short(frame))}:{frame.line} in {clean(frame.function)}", fg="cyan", bold=True
    )
    yield from (
        f"      {clean(line)}" for line in dedent("\n".join(frame.code[-_LINES:])).splitlines() if line
    )


def _short(frame: Frame) -> str:
    """Return a path as seen from here, or else from where its module was found."""
    try:
        return str(Path(frame.path).relative_to(Path.cwd()))
    except ValueError:
        return frame.file
