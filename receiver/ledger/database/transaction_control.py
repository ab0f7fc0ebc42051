"""The first words of a statement: by them it is known whether it would end the transaction that it is sent in.

A statement that goes out by the extended protocol is one statement, and PostgreSQL refuses a second one, and whatever a
function, a procedure, a DO block or a trigger would commit. So what ends a transaction is COMMIT, END, ABORT, ROLLBACK
(but to a savepoint) or PREPARE TRANSACTION, and nothing stands before these words but blanks, semicolons and comments,
as PostgreSQL's own scanner reads them: comments nest, and a carriage return ends a `--` as well. A text whose first
words are not sure counts as an end.
"""

import re
from enum import Enum, auto
from functools import lru_cache

_BLANK = re.compile(rb"(?:[ \t\n\r\f\v]+|--[^\n\r]*)*")  # the vertical tab is one from PostgreSQL 16 on
_BLANK_OR_SEMICOLON = re.compile(rb"(?:[ \t\n\r\f\v;]+|--[^\n\r]*)*")
_COMMENT_EDGE = re.compile(rb"/\*|\*/")
_WORD = re.compile(rb"[A-Za-z_\x80-\xff][A-Za-z0-9_$\x80-\xff]*")
_INSERTED_INTO = re.compile(rb"\binsert\s+into\s+[^\s(]+\s*\(", re.IGNORECASE)
_CALL = re.compile(
    rb"(?<![\w.])(?!(?:values|in|any|all|and|or|not|on|as|by|conflict|exists|filter|from|group|join|lateral|over|select|set"
    rb"|sets|some|using|when|where|with|do|update|then|else|case|returning|materialized)\b)[\w.\"]+\s*\(",
    re.IGNORECASE,
)
_READ_LENGTH = 4096
"""Bytes of a statement whose effect is remembered; longer ones are hardly ever sent twice."""


class Effect(Enum):
    """The effect of a statement on the transaction and the session that it is sent in."""

    NONE = auto()
    COMMITS = auto()
    """It ends the transaction, or may."""
    ROLLS_BACK = auto()
    SETS_ISOLATION = auto()
    SETS_TRANSACTION = auto()
    """It changes what a transaction that is chained to this one would take over."""
    USES_SESSION_UP = auto()
    """It prepares statements, or takes away what is prepared, which nothing puts back."""
    MAY_USE_SESSION_UP = auto()
    """It is code, which may do that as well."""
    MAY_PREPARE = auto()
    """It may call a function that does; triggers aside."""


_BY_WORDS = [
    (re.compile(rb"(?:%s)(?: |\Z)" % words), effect)
    for words, effect in (
        (rb"rollback(?: work| transaction)? to", Effect.NONE),
        (rb"commit|end|prepare transaction", Effect.COMMITS),
        (rb"rollback|abort", Effect.ROLLS_BACK),
        (rb"begin|start|set transaction", Effect.SETS_TRANSACTION),
        (rb"set(?: local| session)? transaction_isolation", Effect.SETS_ISOLATION),
        (rb"prepare|deallocate|discard", Effect.USES_SESSION_UP),
        (rb"do|call", Effect.MAY_USE_SESSION_UP),
    )
]


def effect_of(statement: bytes) -> Effect:
    """Return what a statement does, as far as its first words tell."""
    return _remembered(statement) if len(statement) <= _READ_LENGTH else _effect_of(statement)


def _effect_of(statement: bytes) -> Effect:
    words = None if b"\0" in statement else _first_words(statement)  # libpq sends what is before a NUL
    if words is None:
        return Effect.COMMITS
    found = next((effect for each, effect in _BY_WORDS if each.match(words)), Effect.NONE)
    if found is Effect.SETS_TRANSACTION and b"isolation" in statement.lower():
        return Effect.SETS_ISOLATION
    if found is not Effect.NONE or words.startswith((b"rollback", b"savepoint", b"release")):
        return found
    if words.startswith(b"set") and b"transaction_" in statement.lower():
        return Effect.SETS_TRANSACTION
    is_short = len(statement) <= _READ_LENGTH
    return Effect.MAY_PREPARE if not is_short or _CALL.search(_INSERTED_INTO.sub(b"", statement)) else found


def _first_words(statement: bytes) -> bytes | None:
    """Return up to three words that a statement begins with; None where a comment before one of them does not end."""
    words: list[bytes] = []
    at: int | None = _past_blanks(statement, 0, _BLANK_OR_SEMICOLON)
    while at is not None and (word := _WORD.match(statement, at)) and len(words) < 3:  # noqa: PLR2004  ROLLBACK WORK TO
        words.append(word[0].lower())
        at = _past_blanks(statement, word.end(), _BLANK)
    return None if at is None else b" ".join(words)


def _past_blanks(statement: bytes, at: int, blank: re.Pattern[bytes]) -> int | None:
    """Return where the next word would begin; None where a comment does not end."""
    while True:
        at = blank.match(statement, at).end()  # type: ignore[union-attr]  # it matches nothing, too
        if not statement.startswith(b"/*", at):
            return at
        depth = 0
        for edge in _COMMENT_EDGE.finditer(statement, at):
            depth += 1 if edge[0] == b"/*" else -1
            if depth == 0:
                at = edge.end()
                break
        else:
            return None


_remembered = lru_cache(maxsize=512)(_effect_of)
