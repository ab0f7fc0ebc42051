"""`hookonce events forget-window`: clears the dedup window in Redis."""

import click

from hookonce.receiver.cli.desk import desk
from hookonce.receiver.cli.output.printing import tell
from hookonce.receiver.desk.maintenance import forget_window


@click.command("forget-window")
def forget() -> None:
    """Forget every event id in Redis.

    For after a restore of the database, whose ledger may hold less than before. Loses nothing: until the window
    has learnt them again, duplicates are found by the ledger. The ledger makes itself another key, so nothing of before
    is believed, even if somebody puts it back.
    """
    with desk() as here:
        count = here.ask(forget_window).forgotten
    if count is None:
        tell("the window is reset; Redis is unreachable, and its entries expire on their own")
        return
    tell(f"forgot {count} event ids")
