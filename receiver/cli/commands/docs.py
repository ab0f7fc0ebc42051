"""`hookonce docs`: the pages that came with this version, read and searched offline."""

import re
import sys
from typing import Final

import click

from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import fitted, folded, page, tell
from hookonce.receiver.dashboard.documents import search

_CODE: Final = re.compile(r"(^ *```.*?(?:^ *```$|\Z))", re.DOTALL | re.MULTILINE)
_BREAK: Final = re.compile(r"(?<=\S)\n *(?=[^\s|#<])(?![-*>] |\d+\. )")
"""The end of a line within a paragraph."""


@click.command(
    epilog=examples("hookonce docs", "hookonce docs how-to/alerts", "hookonce docs two stripe accounts")
)
@click.argument("words", nargs=-1, metavar="[WORD]...")
def docs(words: tuple[str, ...]) -> None:
    """Read the documents of this version, or search them.

    Without a WORD the pages are listed. The name of a page, or its last part, shows it; other words find the sections
    about them.
    """
    if not words:
        titles = {each.name: each.title for each in search.sections()}
        page("\n".join(fitted(f"{name:<32} {title}", " " * 33) for name, title in titles.items()))
        return
    if len(words) == 1 and (name := search.page_of(words[0])):
        page(_fitted(search.text_of(name)))
        return
    found, misspelt = search.find(words), search.misspelt(words)
    for word, meant in misspelt.items():
        tell(f"no page has '{word}'" + (f"; did you mean '{meant}'?" if meant else ""))
    if not found:
        raise click.ClickException(
            f"nothing is found for {' '.join(words)!r}; `hookonce docs` lists the pages"
        )
    page("\n\n".join(f"{each.name}: {each.heading}\n{_fitted(each.beginning)}" for each in found))
    tell(f"read a page with `hookonce docs {found[0].name}`")


def _fitted(text: str) -> str:
    """Return Markdown with its paragraphs as wide as the terminal; code stays as it is, to be copied."""
    if not sys.stdout.isatty():
        return text
    parts = _CODE.split(text)
    return "".join(part if n % 2 else folded(_BREAK.sub(" ", part), "") for n, part in enumerate(parts))
