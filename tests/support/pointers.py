"""Pointers in documents: a file, a thing in it (`path::name`), a heading of a page; and whether they lead anywhere."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("bench", "deploy", "docs", "examples", "hookonce", "jobs", "providers", "receiver", "tests")
POINTER = re.compile(rf"`((?:{'|'.join(ROOMS)})/[\w./*-]+)(?:::(\w+))?`")
LINK = re.compile(r"\]\(([^)#:]+\.\w+)?(?:#([\w-]+))?\)")


def pointers(text):
    """The (path, name or '') that a text points to by code."""
    return POINTER.findall(text)


def leads_nowhere(path, name=""):
    """Say what is wrong with a pointer; '' if nothing is."""
    found = ROOT / path
    if not found.exists():
        return f"{path}: no such file"
    if name and name not in names_in(found):
        return f"{path}: no {name} in it"
    return ""


def broken_links(page):
    """The links of a page to files and headings that are not there."""
    broken = []
    for target, heading in LINK.findall(page.read_text()):
        file = (page.parent / target).resolve() if target else page
        if not file.exists() or (heading and heading not in headings_of(file)):
            broken.append(f"{target}#{heading}" if heading else target)
    return broken


@cache
def names_in(file):
    """The functions, methods, classes and constants that a module has."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return frozenset(names)


@cache
def headings_of(page):
    """The anchors of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}
