"""The pages that came with this version, searched offline: for the terminal and the console.

A section is a heading and what stands beneath it. Rare words count for more than frequent ones, and a word in a
heading for more than one in the text.
"""

import math
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import hookonce

_CODE: Final = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
_HEADING: Final = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
_ENDING: Final = re.compile(r"(?<=\w{3})(?:ies|ied|ing|es|ed|s|y|e)$")
_FREQUENT: Final = re.compile(
    r"a|an|and|are|as|at|be|by|can|do|does|for|from|get|have|how|i|in|is|it|its|me|my|of|on|one|or|our|per|the|"
    r"there|to|use|we|what|when|where|which|with|you|your"
)
_MOST: Final = 8
_ON_PAGE: Final = 3
"""Sections of one page that are found at most."""
_LOOKED_UP: Final = 0.5
"""The weight of a section of a page that is looked up, and not read, beside one of another page."""


class Section(NamedTuple):
    """A heading of a page, and the text beneath it."""

    name: str
    title: str
    heading: str
    text: str


def folder() -> Path:
    """Return where the pages are: in the installed package, or beside it in a checkout."""
    package = Path(hookonce.__file__).parent
    return next(each for each in (package / "docs", package.parent / "docs") if each.is_dir())


@cache
def names() -> tuple[str, ...]:
    """Return the names of all pages, like `how-to/replay`; decisions and drafts are no pages."""
    pages = (path.relative_to(folder()) for path in sorted(folder().rglob("*.md")))
    return tuple(str(page.with_suffix("")) for page in pages if page.parts[0] != "decisions")


def text_of(name: str) -> str:
    """Return the Markdown of a page of `names`."""
    return (folder() / f"{name}.md").read_text(encoding="utf-8")


@cache
def sections() -> tuple[Section, ...]:
    """Return the sections of all pages, in their order."""
    return tuple(each for name in names() for each in _sections(name))


def find(words: Iterable[str]) -> list[Section]:
    """Return the sections that fit best, the best one first."""
    asked = {word for each in words for word in re.findall(r"\w+", each.lower())}
    telling = {word for word in asked if not _FREQUENT.fullmatch(word)}
    patterns = [re.compile(rf"\b{_ENDING.sub('', word)}") for word in telling or asked]
    found: list[Section] = []
    for weight, section in sorted(_weighed(patterns), key=lambda each: -each[0]):
        if not weight or len(found) == _MOST:
            break
        if [each.name for each in found].count(section.name) < _ON_PAGE:
            found.append(section)
    return found


def _sections(name: str) -> Iterator[Section]:
    page = text_of(name)
    code = [block.span() for block in _CODE.finditer(page)]
    starts = [
        found
        for found in _HEADING.finditer(page)
        if not any(begin <= found.start() < end for begin, end in code)
    ]
    ends = [*(found.start() for found in starts[1:]), len(page)]
    for found, end in zip(starts, ends, strict=True):
        yield Section(name, starts[0][1], found[1], page[found.end() : end])


def _weighed(patterns: list[re.Pattern[str]]) -> Iterator[tuple[float, Section]]:
    """Yield each section with its weight: for each word how rare it is, and how much of the section is about it."""
    texts = [each.text.lower() for each in sections()]
    counts = [[len(pattern.findall(text)) for pattern in patterns] for text in texts]
    rare = [math.log(len(texts) / (1 + sum(map(bool, column)))) for column in zip(*counts, strict=True)]
    mean = sum(map(len, texts)) / len(texts)
    for section, text, counted in zip(sections(), texts, counts, strict=True):
        size = 0.5 + len(text) / mean
        weight = sum(
            worth * (count / (count + size) + 2 * _has(section.heading, word) + _has(section.title, word))
            for word, worth, count in zip(patterns, rare, counted, strict=True)
        )
        is_looked_up = section.name.startswith("reference/") or section.name in {"index", "providers"}
        yield weight * (_LOOKED_UP if is_looked_up else 1), section


def _has(heading: str, word: re.Pattern[str]) -> bool:
    return word.search(heading.lower()) is not None
