"""Why the desk does not do what was asked: one text for each mistake, whichever way it was asked."""

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import ClassVar, Final, Self

NAMED_OR_CHOSEN: Final = (
    "name events by their ids, or choose them by status, source, type, since …; not both and not neither"
)
UNAUTHORIZED: Final = (
    "the token is unknown, was revoked, or has expired; `hookonce tokens create` makes one where the inbox is, and "
    "`hookonce login` keeps it elsewhere"
)
AFTERWARDS: Final = "; try again when they have ended"
WORDS_FOR_COMMANDS: Final = {
    "hookonce limits": "batches breaker breakers limit rate rates slots throttle",
    "hookonce explain": "decode inspect verify why",
    "hookonce help exits": "codes exits",
    "hookonce help NAME": "man usage",
    "hookonce docs": "guide manual",
    "hookonce events conflicts": "conflict conflicts",
    "hookonce events discard": "abandon ack cancel discard drop skip",
    "hookonce events erase": "delete erase gdpr purge remove rm",
    "hookonce events export": "backup dump export",
    "hookonce events forget-window": "window",
    "hookonce events import": "import load restore",
    "hookonce events list": "dead dead-letters deliveries dlq failed find inbox list ls messages queue search webhooks",
    "hookonce events show": "cat describe get log logs payload show trace view",
    "hookonce handlers list": "functions show",
    "hookonce init": "sources/add sources/create",
    "hookonce issues ignore": "mute silence snooze",
    "hookonce issues list": "bugs errors exceptions failures",
    "hookonce issues fix": "close resolve resolved",
    "hookonce rejected quarantine": "quarantine",
    "hookonce rejected list": "denied invalid refused",
    "hookonce sources list": "endpoints source urls",
    "hookonce sources secrets": "secret secrets",
    "hookonce reverify": "rejected/accept rejected/replay rejected/retry",
    "hookonce replay": "redeliver redo redrive reprocess requeue rerun resend retry",
    "hookonce pause": "disable hold stop suspend",
    "hookonce resume": "continue enable unpause",
    "hookonce trigger": "emit fire sample send simulate test",
    "hookonce dev": "develop local run start up",
    "hookonce serve": "http receiver server web",
    "hookonce worker": "consumer process work",
    "hookonce tail": "follow stream watch",
    "hookonce stats": "count counts info metrics status summary top",
    "hookonce doctor": "check diagnose health lint validate",
    "hookonce db upgrade": "migrate migrations schema upgrade",
    "hookonce tokens create": "add auth create token",
    "hookonce tokens revoke": "delete expire remove rm",
    "hookonce login": "auth connect",
    "hookonce audit": "history",
}
"""Command → other words for it, alone or behind a group. In a group one of its own commands goes before others."""
_WORDS_FOR_OPTIONS: Final = {
    "--json": "format o output",
    "--limit": "count max n number top",
    "--body": "contains grep q query search text",
    "--where": "customer field filter path",
    "--status": "dead done failed held state waiting",
    "--since": "after from last",
    "--until": "before to",
    "--set": "body data payload",
    "--yes": "confirm f force y",
    "hookonce tail": "f follow watch",
    "hookonce --at NAME": "at",
}
"""Option → other words for it, where a command has that option; or the command that does it."""
_WORDS_FOR_CHOICES: Final = {
    "dead": "crashed dlq error errored failed failing failure",
    "done": "completed delivered finished handled ok processed succeeded success successful",
    "waiting": "pending queued retry retrying scheduled",
    "running": "active processing started",
    "received": "accepted new",
    "ignored": "skipped unhandled",
    "open": "unresolved",
    "fixed": "closed resolved",
}
"""Word of a choice, such as a status → words of other tools for it."""


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


def command_for(word: str, group: str, commands: Iterable[str]) -> str | None:
    """Return the command that somebody means by a word who typed it after `group`, which has `commands`; if one is."""
    own = {f"{group} {name}" for name in commands}
    found = [command for command, words in WORDS_FOR_COMMANDS.items() if word in words.split()]
    near = [command for command in found if command in own]
    there = f"{group.removeprefix('hookonce ')}/{word}"
    near += [command for command, words in WORDS_FOR_COMMANDS.items() if there in words.split()]
    is_general = group in {"hookonce", "hookonce events"}
    if is_general and any(letter.isdigit() for letter in word):
        return f"hookonce events show {word}"
    return next(iter(near or (found if is_general else ())), None)


def option_for(word: str, options: Collection[str]) -> str | None:
    """Return what somebody means by an option that a command with `options` lacks; None if it is not known."""
    named = (name for name, words in _WORDS_FOR_OPTIONS.items() if word.lstrip("-") in words.split())
    return next((name for name in named if name in options or name.startswith("hookonce")), None)


def not_one_of(word: object, choices: Iterable[str]) -> str:
    """Return the refusal of a word that is none of the choices, with the nearest of them."""
    every = [str(each) for each in choices]
    close = [each for each in every if str(word) in _WORDS_FOR_CHOICES.get(each, "").split()]
    close = close or get_close_matches(str(word), every, n=1)
    meant = f"; did you mean '{close[0]}'?" if close else ""
    return f"{word!r} is not one of {', '.join(map(repr, every))}{meant}"
