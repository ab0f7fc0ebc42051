"""Pages, command line and documents use the words of the list in docs/reference/console-design.md."""

import ast
import re

from tests.support.for_each import for_each
from tests.support.page_commands import DOCS, ROOT
from tests.test_architecture import MODULES

LIST = DOCS / "reference/console-design.md"
ROWS = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", LIST.read_text().split("## Words")[1], re.MULTILINE)
AVOIDED = [phrase for row in ROWS if row != "avoid" for phrase in row.split(", ")]
FOUND = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, AVOIDED))})(?![\w-])", re.IGNORECASE)
PAGES = [
    page
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")))
    if "decisions" not in page.parts and page != LIST
]
SHOWN = [
    *(ROOT / "receiver/dashboard/templates").rglob("*.html"),
    *(file for file in (ROOT / "receiver/dashboard/static").glob("*.js") if file.name != "htmx.min.js"),
    *MODULES,
]
DESCRIBED = (ROOT / "receiver/cli", ROOT / "receiver/desk")
"""Folders whose docstrings are shown: by `--help`, and in the reference of the API."""


def avoided(text):
    return [match.group() for match in FOUND.finditer(" ".join(text.split()))]


def texts(file):
    """Return what a file may show: of Python code the strings, and docstrings where they are help."""
    if file.suffix != ".py":
        return file.read_text()
    nodes = list(ast.walk(ast.parse(file.read_text())))
    is_help = any(folder in file.parents for folder in DESCRIBED)
    unseen = {id(node.value) for node in nodes if isinstance(node, ast.Expr) and not is_help}
    return "\n".join(
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in unseen
    )


def test_words_to_avoid_are_found_as_words():
    assert len(AVOIDED) > 10
    assert avoided("Since ever: Mend\nit, not an amendment") == ["Since ever", "Mend"]


@for_each(SHOWN)
def test_what_the_product_shows_has_no_word_to_avoid(file):
    assert avoided(texts(file)) == []


@for_each(PAGES)
def test_documents_have_no_word_to_avoid(page):
    assert avoided(page.read_text()) == []
