"""`hookonce docs`: the pages that came with this version, read and searched offline."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import click

import hookonce
from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import page, tell

_HEADING: Final = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
_MOST: Final = 8
_ON_PAGE: Final = 3
"""Sections of one page that are found at most."""


class _Section(NamedTuple):
    name: str
    title: str
    heading: str
    text: str


@click.command(
    epilog=examples("hookonce docs", "hookonce docs how-to/alerts", "hookonce docs two stripe accounts")
)
@click.argument("words", nargs=-1, metavar="[WORD]...")
def docs(words: tuple[str, ...]) -> None:
    """Read the documents of this version, or search them.

    Without a WORD the pages are listed. The name of a page shows it; other words find the sections about them.
    """
    folder = _folder()
    names = [str(each.relative_to(folder).with_suffix("")) for each in sorted(folder.rglob("*.md"))]
    if len(words) == 1 and (name := words[0].removesuffix(".md").removeprefix("docs/")) in names:
        page((folder / f"{name}.md").read_text(encoding="utf-8"))
        return
    sections = [each for name in names for each in _sections(folder, name)]
    if not words:
        page("\n".join(f"{each.name:<44} {each.title}" for each in sections if each.heading == each.title))
        return
    found = _best(sections, [word.lower() for word in words])
    if not found:
        raise click.ClickException(f"no page has {' '.join(words)!r}; `hookonce docs` lists the pages")
    page("\n\n".join(f"{each.name}: {each.heading}\n{each.text.strip()[:600]}" for each in found))
    tell(f"read a page with `hookonce docs {found[0].name}`")


def _folder() -> Path:
    """Return where the pages are: in the installed package, or beside it in a checkout."""
    package = Path(hookonce.__file__).parent
    return next(each for each in (package / "docs", package.parent / "docs") if each.is_dir())


def _sections(folder: Path, name: str) -> Iterator[_Section]:
    """Yield what stands beneath each heading of a page."""
    parts = _HEADING.split((folder / f"{name}.md").read_text(encoding="utf-8"))
    for heading, text in zip(parts[1::2], parts[2::2], strict=True):
        yield _Section(name, parts[1], heading, text)


def _best(sections: list[_Section], words: list[str]) -> list[_Section]:
    """Return the sections with most of the words; one in a heading counts for several in the text."""

    def weight(section: _Section) -> tuple[int, int]:
        title, heading, text = (part.lower() for part in section[1:])
        counts = [5 * (word in heading) + 3 * (word in title) + min(text.count(word), 3) for word in words]
        return sum(map(bool, counts)), sum(counts)

    weighed = sorted(
        ((weight(each), n) for n, each in enumerate(sections)),
        key=lambda each: (-each[0][0], -each[0][1], each[1]),
    )
    found: list[_Section] = []
    for (hits, _), n in weighed:
        if not hits or len(found) == _MOST:
            break
        if [each.name for each in found].count(sections[n].name) < _ON_PAGE:
            found.append(sections[n])
    return found
