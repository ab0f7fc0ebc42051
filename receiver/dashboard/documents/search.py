"""The pages that came with this version, searched offline: for the terminal and the console.

A section is a heading and the text beneath it. Rare words count for more than frequent ones, and a word in a heading
or in the name of the page for more than one in the text. A word with an underscore is a name that is looked up.
"""

import difflib
import math
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import hookonce

_AROUND_NAME: Final = re.compile(r"^(?:\.{0,2}/|docs/)*|(?:\.md)?(?:#.*)?$")
_CODE: Final = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
_HEADING: Final = re.compile(r"^#{1,3} (.+)$", re.MULTILINE)
_COMMENT: Final = re.compile(r"^<!--.*?-->\n|<!--.*?-->", re.DOTALL | re.MULTILINE)
_ROW: Final = re.compile(r"^\| `(\w+)`", re.MULTILINE)
_ENDING: Final = re.compile(r"(?<=\w{3})(?:ies|ied|ing|ions?|es|ed|s|y|e)$")
_FREQUENT: Final = re.compile(
    r"a|an|and|are|as|at|be|by|can|do|does|for|from|get|have|how|i|in|is|it|its|me|my|new|of|on|one|or|our|out|per|"
    r"the|there|to|use|we|webhooks?|what|when|where|which|with|you|your"
)
_SYNONYMS: Final = {
    "alerts": "notification notify pager",
    "benchmarks": "latency performance speed throughput",
    "broker": "kafka pubsub",
    "console": "gui ui",
    "customer": "tenant",
    "dead": "dlq letter poison",
    "duplicates": "dedup dedupe deduplication unique",
    "erase": "delete forgotten gdpr remove",
    "forwards": "fan outbox",
    "health": "healthcheck liveness readiness uptime",
    "failed": "debug locals",
    "idempotent": "idempotency",
    "kubernetes": "helm k8s",
    "limits": "quota throttle",
    "mail": "email smtp",
    "move": "migrate replace switch",
    "order": "fifo sequence",
    "outage": "downtime incident stuck",
    "promised": "exactly guarantee",
    "protection": "pii privacy",
    "rejected": "401 unauthorized",
    "restrict": "login password sso",
    "replay": "reprocess rerun",
    "retention": "archive cleanup expiry expire prune purge ttl",
    "retries": "attempts backoff",
    "rights": "grants permissions roles",
    "standby": "availability failover ha replica",
    "trace": "opentelemetry otel",
    "tunnel": "localhost",
    "tutorial": "begin quickstart start",
    "worker": "celery dramatiq sidekiq",
}
"""Words of headings, and other words for them."""
_MOST: Final = 8
_ON_PAGE: Final = 3
"""Sections of one page that are found at most."""
_LOOKED_UP: Final = 0.5
"""The weight of a section of a page that is looked up, and not read, beside one of another page."""
_BESIDE: Final = frozenset({"index", "providers", "explanation/architecture", "explanation/three-tasks"})
_SHORT: Final = 3
_EXCERPT: Final = 600
"""Characters of a section that are shown where it is found."""


class Section(NamedTuple):
    """A heading of a page, and the text beneath it."""

    name: str
    title: str
    heading: str
    text: str

    @property
    def beginning(self) -> str:
        """The beginning of the text, up to the end of a word."""
        text = self.text.strip()
        return text if len(text) <= _EXCERPT else text[: _EXCERPT - 2].rsplit(None, 1)[0] + " …"


def folder() -> Path:
    """Return where the pages are: in the installed package, or beside it in a checkout."""
    package = Path(hookonce.__file__).parent
    return next(each for each in (package / "docs", package.parent / "docs") if each.is_dir())


@cache
def names() -> tuple[str, ...]:
    """Return the names of all pages, like `how-to/replay`; decisions and drafts are no pages."""
    pages = (path.relative_to(folder()) for path in sorted(folder().rglob("*.md")))
    return tuple(str(page.with_suffix("")) for page in pages if page.parts[0] != "decisions")


def page_of(word: str) -> str | None:
    """Return the page that a word names: in full, by the last part alone if no other ends so, or as a link has it."""
    name = _AROUND_NAME.sub("", word)
    found = [each for each in names() if each == name or each.endswith(f"/{name}")]
    return name if name in found else found[0] if len(found) == 1 else None


def text_of(name: str) -> str:
    """Return the Markdown of a page of `names`, without its comments, which are for tests."""
    return _COMMENT.sub("", (folder() / f"{name}.md").read_text(encoding="utf-8"))


@cache
def sections() -> tuple[Section, ...]:
    """Return the sections of all pages, in their order."""
    return tuple(each for name in names() for each in _sections(name))


def find(words: Iterable[str]) -> list[Section]:
    """Return the sections that fit best, the best one first."""
    asked = _words(words)
    telling = [word for word in asked if not _FREQUENT.fullmatch(word)] or asked
    looks_up = any("_" in word for word in telling)
    found: list[Section] = []
    for weight, section in sorted(
        _weighed([*map(_pattern, telling)], looks_up=looks_up), key=lambda each: -each[0]
    ):
        if not weight or len(found) == _MOST:
            break
        if [each.name for each in found].count(section.name) < _ON_PAGE:
            found.append(section)
    return found


def misspelt(words: Iterable[str]) -> dict[str, str]:
    """Return the words that no page has, each with one that it resembles, or ''."""
    missing = [word for word in _words(words) if not any(map(_pattern(word).search, _texts()))]
    known = _words([*_SYNONYMS.values(), *(f"{each.name} {each.heading}" for each in sections())])
    return {word: "".join(difflib.get_close_matches(word, known, n=1, cutoff=0.7)) for word in missing}


def _words(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(word for each in texts for word in re.findall(r"\w+", each.lower())))


def _stem(word: str) -> str:
    """Return the pattern of a word's forms; a short word has none but the plural."""
    stem = _ENDING.sub("", word)
    return stem if len(word) > _SHORT else rf"{word}s?\b"


_SAME: Final = {_stem(each): word for word, others in _SYNONYMS.items() for each in others.split()}


def _pattern(word: str) -> re.Pattern[str]:
    """Return what finds a word, and one of `_SYNONYMS` for it."""
    return re.compile("|".join(rf"\b{_stem(each)}" for each in {word, _SAME.get(_stem(word), word)}))


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


@cache
def _texts() -> tuple[str, ...]:
    return tuple(each.text.lower() for each in sections())


def _weighed(patterns: list[re.Pattern[str]], *, looks_up: bool) -> Iterator[tuple[float, Section]]:
    """Yield each section with its weight: for each word how rare it is, and how much of the section is about it."""
    texts = _texts()
    counts = [[len(pattern.findall(text)) for pattern in patterns] for text in texts]
    rare = [math.log(len(texts) / (1 + sum(map(bool, column)))) for column in zip(*counts, strict=True)]
    mean = sum(map(len, texts)) / len(texts)
    for section, text, counted in zip(sections(), texts, counts, strict=True):
        size = 0.5 + len(text) / mean
        heading = " ".join([section.heading, *_ROW.findall(text)] if looks_up else [section.heading]).lower()
        page = f"{section.name} {section.title}".lower()
        weight = sum(
            worth * (count / (count + size) + 2 * bool(word.search(heading)) + bool(word.search(page)))
            for word, worth, count in zip(patterns, rare, counted, strict=True)
        )
        is_beside = section.name.startswith("reference/") or section.name in _BESIDE
        yield weight * (_LOOKED_UP if is_beside and not looks_up else 1), section
