"""What a handler's statement does to the transaction and the session it runs in, as far as its text tells.

Statements in a row are looked at where they begin; what a function does is not seen.
"""

import re
from functools import lru_cache
from typing import NamedTuple

_COMMENTS = r"(?:\s|--[^\n]*\n|(?>/\*.*?\*/))*+"
_STAINS_SESSION = re.compile(
    rf"(?:^|;){_COMMENTS}(set\s+(?!local\b|constraints\b|transaction\b)|(reset|listen|discard|prepare|deallocate|declare)\b)"
    r"|set_config\s*\(|pg_(try_)?advisory_lock|\bpg_temp\.|\btemp(orary)?\s+(table|view|sequence)"
    r"|(?<!insert\s)\binto\s+temp(orary)?\s",
    re.IGNORECASE | re.DOTALL,
)
# One statement that its first word makes one of these: by PostgreSQL's grammar none of them ends a transaction block,
# nor does anything that they call.
_KEEPS_TRANSACTION = re.compile(
    rf"{_COMMENTS}[\s(]*(select|insert|update|delete|merge|values|with|savepoint|release|rollback\s+to)\b[^;]*;?\s*\Z",
    re.IGNORECASE,
)
_ENDS_TRANSACTION = re.compile(
    rf"{_COMMENTS};*{_COMMENTS}"
    r"(commit|end|abort|begin|start\s+transaction|prepare\s+transaction|rollback(?!\s+(work\s+|transaction\s+)?to\b))\b"
    r"|.*?;\s*(commit|abort|rollback)(\s+(work|transaction))?(\s+and\s+(no\s+)?chain)?\s*(;|$)",
    re.IGNORECASE | re.DOTALL,
)
_CHANGES_SETTING = re.compile(
    rf"(?:^|;){_COMMENTS}set\s+(?!constraints\b|transaction\b)|set_config\s*\(", re.IGNORECASE | re.DOTALL
)
_SETS_ISOLATION = re.compile(
    r"\bset\s+transaction\b[^;]*\bisolation\b|\bset\s+((local|session)\s+)?transaction_isolation\b"
    r"|set_config\s*\(\s*'transaction_isolation'",
    re.IGNORECASE,
)
_CHANGES_TRANSACTION = re.compile(r"\bset\s+transaction\b|transaction_(read_only|deferrable)", re.IGNORECASE)
_KEPT_LENGTH = 4096
"""Characters of a statement whose effects are remembered; longer ones are hardly ever sent twice."""


class StatementEffects(NamedTuple):
    """What a statement does.

    `keeps_transaction`: it certainly does not end it; `ends_transaction`: it plainly does; all others nobody knows.
    """

    keeps_transaction: bool
    ends_transaction: bool
    changes_session: bool
    changes_setting: bool
    sets_isolation: bool
    changes_transaction: bool


def effects_of(statement: str) -> StatementEffects:
    """Read a statement."""
    return _remembered(statement) if len(statement) <= _KEPT_LENGTH else _read(statement)


def _read(statement: str) -> StatementEffects:
    keeps = _KEEPS_TRANSACTION.match(statement) is not None
    return StatementEffects(
        keeps_transaction=keeps,
        ends_transaction=not keeps and _ENDS_TRANSACTION.match(statement) is not None,
        changes_session=_STAINS_SESSION.search(statement) is not None,
        changes_setting=_CHANGES_SETTING.search(statement) is not None,
        sets_isolation=_SETS_ISOLATION.search(statement) is not None,
        changes_transaction=_CHANGES_TRANSACTION.search(statement) is not None,
    )


_remembered = lru_cache(maxsize=256)(_read)
