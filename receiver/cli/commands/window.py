"""`hookonce events forget-window`: clears the dedup window in Redis."""

from hookonce.receiver.cli.action_command import done
from hookonce.receiver.desk.maintenance import Forgotten, forget_window


def _told(found: Forgotten) -> str:
    if found.forgotten is None:
        return "the window is reset; Redis is unreachable, and its entries expire on their own"
    return f"forgot {found.forgotten} event ids"


forget = done(
    forget_window,
    _told,
    name="forget-window",
    about="""Forget every event id in Redis.

    For after a restore of the database, whose ledger may hold less than before. Loses nothing: until the window
    has learnt them again, duplicates are found by the ledger. The ledger makes itself another key, so nothing of before
    is believed, even if somebody puts it back.
    """,
)
