"""Errors of another inbox: each is one line, and its class says whether to try again."""

from datetime import timedelta

NO_INBOX = "no_inbox"
"""The code of a `Refused` by what is no inbox: a proxy, a sign-in page."""
_LONGEST = 300


class RemoteError(Exception):
    """Another inbox can't be asked; the text says which, why, and what to do. It never holds a token."""


class BadAddress(RemoteError):  # noqa: N818  a state of the world
    """The address is none, or may not be sent a token."""


class NoProfile(RemoteError):  # noqa: N818  a state of the world
    """Nobody has logged in there."""


class BadProfiles(RemoteError):  # noqa: N818  a state of the world
    """The file of tokens can't be used."""


class Refused(RemoteError):  # noqa: N818  an answer
    """The other end has answered, and would say the same again; `code` is its word for it, of an inbox.

    `said` is what an inbox said, word for word, where it has understood what was asked of it, and `status` HTTP's.
    """

    def __init__(self, text: str, code: str = "", said: str = "", status: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.said = said
        self.status = status


class Unreachable(RemoteError):  # noqa: N818  an answer
    """Nothing useful came back this time; `wait` is how long the other end asks to be left alone."""

    def __init__(self, text: str, wait: timedelta = timedelta(0)) -> None:
        super().__init__(text)
        self.wait = wait


def plain(text: object) -> str:
    """Return what the other end wrote as it may stand in a line of ours: printable, and not long."""
    shown = str(text)[:_LONGEST]
    return "".join(each if each.isprintable() else "?" for each in shown)
