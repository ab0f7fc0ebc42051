"""Where a probe stands: before the statement that a mutant changes, or first in the function that executes it."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.mutants.mutant import Mutant

PROBE = '__import__("mutants_probe").note({})'
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Site(NamedTuple):
    """A line of a file, from 1, before which a statement can be put, and how far that is indented.

    when: what must be true there, in the names of that place
    """

    file: str
    line: int
    indent: int
    when: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" if {self.when}" if self.when else "")

    @property
    def probe(self) -> str:
        """The statement that notes who comes by, as a line."""
        arguments = repr(str(self)) + (f", lambda: {self.when}" if self.when else "")
        return " " * self.indent + PROBE.format(arguments) + "\n"


def site_of(tree: Path, mutant: Mutant) -> Site:
    """Return where the probe of a mutant stands in a checkout. Raises: ValueError where there is no such place."""
    if mutant.reached_in:
        file, _, what = mutant.reached_in.partition("::")
        return _site(file, _named((tree / file).read_text(), what, mutant), mutant.when)
    text = (tree / mutant.file).read_text()
    mutant.planted(text)
    statement = _innermost(text, mutant.line(text))
    if statement is None:
        raise ValueError(f"mutant {mutant.name}: no function has its line; name one as reached_in")
    return _site(mutant.file, statement, mutant.when)


def with_probes(text: str, sites: list[Site]) -> str:
    """Return the text of a module with a probe at each of these sites, which are all in it."""
    lines = text.splitlines(keepends=True)
    for site in sorted(set(sites), key=lambda each: each.line, reverse=True):
        lines.insert(site.line - 1, site.probe)
    return "".join(lines)


def _site(file: str, statement: ast.stmt, when: str) -> Site:
    decorators = getattr(statement, "decorator_list", [])
    line = min([statement.lineno, *(each.lineno for each in decorators)])
    return Site(file, line, statement.col_offset, when)


def _named(text: str, what: str, mutant: Mutant) -> ast.stmt:
    """Return the first statement of a function, behind its docstring, or the one in which a text stands once."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _FUNCTIONS) and node.name == what:
            has_docstring = ast.get_docstring(node, clean=False) is not None
            return node.body[1 if has_docstring and len(node.body) > 1 else 0]
    line = text.count("\n", 0, text.find(what)) + 1
    statement = _innermost(text, line) if text.count(what) == 1 else None
    if statement is None:
        raise ValueError(
            f"mutant {mutant.name}: there is no function and no one statement {mutant.reached_in}"
        )
    return statement


def _innermost(text: str, line: int) -> ast.stmt | None:
    """Return the smallest statement that has a line and is in a function; an `elif` stands for its whole `if`."""
    lines = text.splitlines()
    found, is_inside = None, False
    block: list[ast.stmt] = ast.parse(text).body
    while there := next((each for each in block if _has(each, line)), None):
        if is_inside and not lines[there.lineno - 1].lstrip().startswith("elif "):
            found = there
        is_inside = is_inside or isinstance(there, _FUNCTIONS)
        block = list(_inner(there))
    return found


def _has(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)


def _inner(statement: ast.stmt) -> Iterator[ast.stmt]:
    """Yield the statements of all blocks of a statement."""
    for name in ("body", "orelse", "finalbody"):
        yield from getattr(statement, name, [])
    for part in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
        yield from part.body
