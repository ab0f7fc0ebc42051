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


ASKING = re.compile(r"(?:What|Who|Whoever|Of|Where|The same)\b", re.IGNORECASE)
FIRST = frozenset({"tell", "echo", "put", "say"})
"""Functions whose first argument is shown; of a mistake it is the first one, too."""
NAMED = {"Field": "description", "option": "help", "Option": "help", "group": "help", "Group": "help"}
MISTAKES = (
    "Error",
    "Refused",
    "NotFound",
    "Conflict",
    "Exception",
    "Invalid",
    "Unavailable",
    "NotConfigured",
)


def messages(tree):
    """Yield the beginnings of the texts that a module gives to those who show them."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        given = call.args[:1] if name in FIRST or name.endswith(MISTAKES) else []
        given += [each.value for each in call.keywords if each.arg == NAMED.get(name, "")]
        for text in given:
            first = text.values[0] if isinstance(text, ast.JoinedStr) and text.values else text
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def test_message_that_hides_its_noun_is_found():
    source = 'tell("what came"); raise_(NotFound(f"where {x}")); Field(None, description="of it"); tell("whatever")'

    found = {text for text in messages(ast.parse(source)) if ASKING.match(text)}
    assert found == {"what came", "where ", "of it"}


@for_each(MODULES)
def test_no_message_hides_its_noun(file):
    assert [text for text in messages(ast.parse(file.read_text())) if ASKING.match(text)] == []


HIDING = re.compile(r"(?:What|Who|Whoever|Whose|Of|Where)\b")


def docstrings(tree):
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented))
    return [text for text in found if text]


@for_each(MODULES)
def test_no_docstring_hides_its_noun(file):
    assert [text for text in docstrings(ast.parse(file.read_text())) if HIDING.match(text)] == []
