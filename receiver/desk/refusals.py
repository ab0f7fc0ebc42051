"""Why the desk does not do what was asked: one text for each mistake, whichever way it was asked."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, Self

NAMED_OR_CHOSEN: Final = (
    "name events by their ids, or choose them by status, source, type, since …; not both and not neither"
)
UNAUTHORIZED: Final = (
    "the token is unknown, was revoked, or has expired; `hookonce tokens create` makes one where the inbox is, and "
    "`hookonce login` keeps it elsewhere"
)
AFTERWARDS: Final = "; try again when they have ended"


class Refused(Exception):  # noqa: N818  an answer
    """Nothing was done; the text says what failed, what was expected and what to do, `code` what kind it is."""

    usual_code: ClassVar[str]

    def __init__(self, detail: str, *, code: str | None = None) -> None:
        super().__init__(detail)
        self.code = code or self.usual_code


class NotFound(Refused):
    """There is no such event, source, handler or other name."""

    usual_code = "not_found"


class Ambiguous(NotFound):
    """There are several; the text names them."""

    usual_code = "ambiguous"


class Conflict(Refused):
    """The state of things forbids it."""

    usual_code = "conflict"


class Contradictory(Conflict):
    """Arguments contradict each other, or choose nothing."""

    usual_code = "contradictory"


class NotConfigured(Conflict):
    """The configuration does not provide for it."""

    usual_code = "not_configured"


class Invalid(Refused):
    """Arguments are not those that the action takes; the text names the fields."""

    usual_code = "invalid"


class Forbidden(Refused):
    """The token of the caller lacks `scope`."""

    usual_code = "forbidden"

    def __init__(self, detail: str, *, scope: str = "", code: str | None = None) -> None:
        super().__init__(detail, code=code)
        self.scope = scope

    @classmethod
    def of(cls, token: str, scope: str) -> Self:
        """Refuse what a token may not do."""
        return cls(
            f"the token '{token}' lacks the scope {scope}; `hookonce tokens create NAME --scope {scope}` makes one "
            "that has it",
            scope=scope,
        )


class Unauthorized(Refused):
    """The token is none that the inbox knows."""

    usual_code = "unauthorized"


class Unavailable(Refused):
    """Something that it needs is missing here, or does not answer."""

    usual_code = "ledger_unavailable"


def not_in_ledger(names: Iterable[object]) -> str:
    """Return the line about names that no event has."""
    named = (
        ", ".join(map(str, names)).encode(errors="backslashreplace").decode()
    )  # it may hold lone surrogates
    return f"not in the ledger: {named}; expected ids, or how they begin, see `hookonce events list`"


def left_alone(events: Sequence[int], why: str, then: str = "") -> list[str]:
    """Return the line about events that were not touched, and `then` what to do; none where there are no events."""
    return [f"left alone, since {why}: {', '.join(map(str, events))}{then}"] if events else []
