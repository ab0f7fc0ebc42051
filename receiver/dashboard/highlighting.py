"""Code and JSON on a page: Pygments names the kind of each token, and the style sheet has a colour for it."""

from functools import lru_cache

import pygments
from markupsafe import Markup, escape
from pygments.formatters.html import HtmlFormatter
from pygments.lexers.data import JsonLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, String, Text

MAX_HIGHLIGHTED = 30_000
"""Characters; a longer text is plain, since each thousand takes a millisecond of a receiver's time."""
_KINDS = (Comment, Keyword, Name.Builtin, Name.Class, Name.Decorator, Name.Function, Name.Tag, Number, String)
_LEXERS = {
    "json": JsonLexer(stripnl=False, ensurenl=False),
    "python": PythonLexer(stripnl=False, ensurenl=False),
}
_FORMATTER = HtmlFormatter(nowrap=True)


def highlighted(text: str, language: str) -> Markup:
    """Return a text as HTML; no element goes over the end of a line, and what has no colour has no element."""
    if len(text) > MAX_HIGHLIGHTED:
        return escape(text)
    tokens = (
        (next((kind for kind in _KINDS if token in kind), Text), part)
        for token, part in _LEXERS[language].get_tokens(text)
    )
    html = pygments.format(tokens, _FORMATTER)
    ended = html if text.endswith("\n") else html.removesuffix("\n")  # the formatter ends each line
    return Markup(ended)  # noqa: S704  the formatter escapes


@lru_cache(maxsize=256)
def as_code(lines: str) -> Markup:
    """Return lines of a handler's file as HTML, remembered: attempts fail at the same places, and no event is in it."""
    return highlighted(lines, "python")
