"""`hookonce docs`: the pages that came with this version, read and searched offline."""

import click

from hookonce.receiver.cli.options.examples import examples
from hookonce.receiver.cli.output.printing import page, tell
from hookonce.receiver.dashboard.documents import search


@click.command(
    epilog=examples("hookonce docs", "hookonce docs how-to/alerts", "hookonce docs two stripe accounts")
)
@click.argument("words", nargs=-1, metavar="[WORD]...")
def docs(words: tuple[str, ...]) -> None:
    """Read the documents of this version, or search them.

    Without a WORD the pages are listed. The name of a page shows it; other words find the sections about them.
    """
    if len(words) == 1 and (name := words[0].removesuffix(".md").removeprefix("docs/")) in search.names():
        page(search.text_of(name))
        return
    if not words:
        titles = {each.name: each.title for each in search.sections()}
        page("\n".join(f"{name:<44} {title}" for name, title in titles.items()))
        return
    found, misspelt = search.find(words), search.misspelt(words)
    for word, meant in misspelt.items():
        tell(f"no page has '{word}'" + (f"; did you mean '{meant}'?" if meant else ""))
    if not found:
        raise click.ClickException(
            f"nothing is found for {' '.join(words)!r}; `hookonce docs` lists the pages"
        )
    page("\n\n".join(f"{each.name}: {each.heading}\n{each.beginning}" for each in found))
    tell(f"read a page with `hookonce docs {found[0].name}`")
