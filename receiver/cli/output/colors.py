"""One colour for each status, everywhere; click takes colours away where no terminal shows them, or NO_COLOR is set."""

import click

from hookonce.receiver.ledger.states import EventStatus

_OF: dict[str, dict[str, object]] = {
    "accepted": {"fg": "green"},
    EventStatus.DONE: {"fg": "green"},
    "ok": {"fg": "green"},
    "replayed": {"fg": "green"},
    "released": {"fg": "green"},
    "duplicate": {"fg": "cyan"},
    EventStatus.RECEIVED: {"fg": "cyan"},
    EventStatus.RUNNING: {"fg": "cyan"},
    "handshake": {"fg": "cyan"},
    "alert": {"fg": "yellow"},
    "conflict": {"fg": "yellow"},
    EventStatus.HELD: {"fg": "yellow"},
    EventStatus.WAITING: {"fg": "yellow"},
    "warn": {"fg": "yellow"},
    EventStatus.DEAD: {"fg": "red", "bold": True},
    EventStatus.LOST: {"fg": "red", "bold": True},
    "fail": {"fg": "red"},
    "rejected": {"fg": "red"},
    EventStatus.DISCARDED: {"dim": True},
    EventStatus.IGNORED: {"dim": True},
}


def paint(status: str, text: str | None = None) -> str:
    """Return a status, or the text that stands for it, in its colour."""
    text = status if text is None else text
    style = _OF.get(status)
    return click.style(text, **style) if style else text  # type: ignore[arg-type]


def is_status(text: str) -> bool:
    """Return whether a word has a colour."""
    return text in _OF
