"""A traceback for whoever writes the handler: what each error says and the handler's own frames, then libraries'.

Made from the text that the ledger keeps; what is not understood is shown as it is.
"""

import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import click

from hookonce.receiver.cli.output.tables import clean

_FRAME = re.compile(r'^(?P<indent> *)File "(?P<path>.*)", line (?P<line>\d+), in (?P<name>.*)$')
_HEADS = ("Traceback (most recent call last):",)
_LINKS = {
    "The above exception was the direct cause of the following exception:": "which caused",
    "During handling of the above exception, another exception occurred:": "and while that was handled",
}
_CYTHON = (".pyx", ".pxd", ".pxi")  # its frames name sources that are not there
_LIBRARIES = (
    "<",
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    str(Path(__file__).parents[3]),
)


def own_frames_first(text: str) -> str:
    """Return a traceback in colour, indented by four; safe for a terminal."""
    first: list[str] = []
    libraries: list[str] = []
    for section in _sections(clean(text, lines=True)):
        told, own, others = _sorted(section)
        first += [*told, *own]
        libraries += [*told[:1], *others] if others else []
    heading = [click.style("in libraries:", dim=True)] if libraries else []
    return "\n".join(f"    {line}" for line in [*first, *heading, *libraries])


def _sections(text: str) -> Iterator[list[str]]:
    """Yield the lines of each error; what links two of them stands alone."""
    section: list[str] = []
    for line in text.splitlines():
        if line.strip() in _LINKS or line.strip().startswith("---- "):
            yield section
            yield [line]
            section = []
        else:
            section.append(line)
    yield section


def _sorted(section: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Return what an error says, the handler's own frames, and those of libraries."""
    if len(section) == 1 and (link := _LINKS.get(section[0].strip())):
        return [click.style(link, dim=True)], [], []
    told: list[str] = []
    own: list[str] = []
    others: list[str] = []
    frame: list[str] | None = None
    depth = 0
    for line in section:
        if found := _FRAME.match(line):
            is_library = found["path"].startswith(_LIBRARIES) or found["path"].endswith(_CYTHON)
            frame, depth = (others if is_library else own), len(found["indent"])
            where = f"  {_short(found['path'])}:{found['line']} in {found['name']}"
            frame.append(
                click.style(where, dim=True) if is_library else click.style(where, fg="cyan", bold=True)
            )
        elif frame is not None and line.startswith(" " * (depth + 1)):
            frame.append(click.style(f"      {line.strip()}", dim=frame is others))
        elif line.strip() and line.strip() not in _HEADS:
            frame = None
            told.append(click.style(line, fg="red", bold=not told))
    return told, own, others


def _short(path: str) -> str:
    """Return a path as seen from here."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path
