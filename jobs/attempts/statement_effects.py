"""What a handler's statement does to the transaction and the session it runs in, as far as its text tells.

Statements in a row are looked at where they begin; what a function does is not seen.
"""

import re
from functools import cached_property, lru_cache

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
_SETS_ISOLATION = re.compile(
    r"\bset\s+transaction\b[^;]*\bisolation\b|\bset\s+((local|session)\s+)?transaction_isolation\b"
    r"|set_config\s*\(\s*'transaction_isolation'",
    re.IGNORECASE,
)
# By a name that is no literal, it may set any; these two may take away the right to write a mark.
_MAY_SET_ROLE = re.compile(
    r"set_config\s*\(\s*(?!'(?!(?:role|session_authorization)')\w)", re.IGNORECASE | re.DOTALL
)
_ROLLBACK = rf"(?:^|;){_COMMENTS}(rollback|abort)\b"
_ROLLS_BACK = re.compile(_ROLLBACK, re.IGNORECASE | re.DOTALL)
_GOES_ON_BEHIND_IT = re.compile(rf"{_ROLLBACK}[^;]*;{_COMMENTS}[^;]", re.IGNORECASE | re.DOTALL)
_ODD_ROLLBACK = re.compile(r"\b(rollback|abort)\b.*;", re.IGNORECASE | re.DOTALL)
_MAY_CALL = re.compile(r"\bselect\b.*\w\s*\(", re.IGNORECASE | re.DOTALL)
_CHANGES_TRANSACTION = re.compile(r"\bset\s+transaction\b|transaction_(read_only|deferrable)", re.IGNORECASE)
# What `_COMMENTS` would misread: a comment inside a comment, and one that a carriage return ends.
_ODD_COMMENT = re.compile(r"/\*(?:(?!\*/).)*/\*|--[^\n]*\r", re.DOTALL)
_KEPT_LENGTH = 4096
"""Characters of a statement whose effects are remembered; longer ones are hardly ever sent twice."""


class StatementEffects:
    """What one statement does; each answer is looked for when it is first asked for."""

    def __init__(self, statement: str) -> None:
        self._statement = statement

    @cached_property
    def is_plain(self) -> bool:
        """Whether it is one statement that is sure to do nothing of what follows here."""
        return self.keeps_transaction and not (
            self.changes_session
            or self.may_set_role
            or self.rolls_back
            or self.may_call
            or self.sets_isolation
            or self.changes_transaction
        )

    @cached_property
    def keeps_transaction(self) -> bool:
        """Whether it certainly does not end the transaction."""
        return _KEEPS_TRANSACTION.match(self._statement) is not None and not self._is_odd

    @cached_property
    def ends_transaction(self) -> bool:
        """Whether it plainly ends it; what neither keeps nor ends it, nobody knows."""
        return not self.keeps_transaction and _ENDS_TRANSACTION.match(self._statement) is not None

    @cached_property
    def changes_session(self) -> bool:
        """Whether it leaves something on the session, or takes away what is prepared there."""
        return self._is_odd or _STAINS_SESSION.search(self._statement) is not None

    @cached_property
    def _is_odd(self) -> bool:
        return _ODD_COMMENT.search(self._statement) is not None

    @cached_property
    def may_set_role(self) -> bool:
        """Whether it may make the transaction another role's by a function."""
        return _MAY_SET_ROLE.search(self._statement) is not None

    @cached_property
    def rolls_back(self) -> bool:
        """Whether it may roll back what was done before it."""
        return self._is_odd or _ROLLS_BACK.search(self._statement) is not None

    @cached_property
    def goes_on_behind_a_rollback(self) -> bool:
        """Whether it may roll back and then do more, such as to commit."""
        found = _ODD_ROLLBACK if self._is_odd else _GOES_ON_BEHIND_IT
        return found.search(self._statement) is not None

    @cached_property
    def may_call(self) -> bool:
        """Whether it may call a function that is not PostgreSQL's; triggers aside."""
        return _MAY_CALL.search(self._statement) is not None

    @cached_property
    def sets_isolation(self) -> bool:
        """Whether it sets the isolation of the transaction."""
        return _SETS_ISOLATION.search(self._statement) is not None

    @cached_property
    def changes_transaction(self) -> bool:
        """Whether it makes another kind of transaction of it."""
        return _CHANGES_TRANSACTION.search(self._statement) is not None


def effects_of(statement: str) -> StatementEffects:
    """Read a statement; those that are sent again and again are read once."""
    return _remembered(statement) if len(statement) <= _KEPT_LENGTH else StatementEffects(statement)


_remembered = lru_cache(maxsize=256)(StatementEffects)
