"""Sentences of public docstrings and of pages name what they are about: none opens with Who, or "What … is what"."""

import ast
import re

from tests.support.for_each import for_each
from tests.support.page_commands import DOCS, ROOT
from tests.test_architecture import MODULES

HIDES = re.compile(
    r"(?:^|(?<=[.!:] )|(?<=\*\* ))(?:Whoever |Who (?![^.|]*\?)|What [^.?|;,]* is what )", re.MULTILINE
)
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
    if "decisions" not in page.parts and page.name != "providers.md"
]
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def hiding(text):
    return [text[found.start() : found.start() + 60] for found in HIDES.finditer(text)]


@for_each(MODULES)
def test_public_docstrings_name_their_nouns(module):
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documented = [
        node
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, kinds) and not getattr(node, "name", "").startswith("_")
    ]

    said = [" ".join((ast.get_docstring(node) or "").split()) for node in documented]

    assert [each for text in said for each in hiding(text)] == []


@for_each(PAGES)
def test_pages_name_their_nouns(page):
    assert hiding(CODE.sub("", page.read_text())) == []
